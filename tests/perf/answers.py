"""Whether placements and plans are still what they were: the code's answers beside a record of their hashes.

python -m tests.perf.answers                    compares all; exits 1 when one differs
python -m tests.perf.answers --only wide/       only those whose names begin so
python -m tests.perf.answers --show wide/017    prints one in full
python -m tests.perf.answers --write            makes what is answered now the record

For a change that must keep what the code decides. To see how an answer differs, compare what `--show` prints before and after
the change. Generated worlds depend on the strategies of tests/properties: change those, and the worlds are others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tests.perf import answered_cases, answered_plans, answered_worlds
from tests.perf.answer import Answer, Questions, hashed

RECORD = Path(__file__).with_suffix(".json")
GROUPS: Mapping[str, Callable[[], Questions]] = {
    "examples": answered_plans.examples,
    "cases/placement": answered_cases.pods,
    "cases/unplaceable": answered_plans.unplaceable_pods,
    "cases/buffers": answered_cases.buffers,
    "cases/budgets": answered_plans.budgets,
    "cases/documents": answered_plans.documents,
    "wide": partial(answered_worlds.generated_worlds, "wide"),
    "crowded": partial(answered_worlds.generated_worlds, "crowded"),
    "markets": partial(answered_worlds.generated_worlds, "markets"),
    "benchmark": answered_worlds.mixes,
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the record keeps of an answer: hashes of its two texts, and what tells whether another one is better."""

    placed: str
    said: str
    price: float
    nodes: int
    unplaced: int


Record = dict[str, Recorded]


def recorded(answer: Answer) -> Recorded:
    return Recorded(hashed(answer.placed), hashed(answer.said), answer.price, answer.nodes, answer.unplaced)


def questions(prefix: str) -> Iterator[tuple[str, str, Callable[[], Answer]]]:
    """Group, name and what finds the answer."""
    for group, asked in GROUPS.items():
        if group.startswith(prefix) or prefix.startswith(f"{group}/"):
            for name, ask in asked():
                if f"{group}/{name}".startswith(prefix):
                    yield group, f"{group}/{name}", ask


def answered(prefix: str) -> Record:
    """What is answered now; tells of each group how long it took."""
    found: Record = {}
    count, began, current = 0, time.perf_counter(), ""
    for group, name, ask in questions(prefix):
        if group != current and current:
            _progress(current, count, began)
            count, began = 0, time.perf_counter()
        assert name not in found, name
        try:
            found[name] = recorded(ask())
        except Exception as error:
            error.add_note(f"while answering {name}")
            raise
        count, current = count + 1, group
    if current:
        _progress(current, count, began)
    return found


def _progress(group: str, count: int, began: float) -> None:
    print(f"{group:20} {count:4} answers {time.perf_counter() - began:6.1f} s", flush=True)


def read_record() -> Record:
    if not RECORD.exists():
        return {}
    rows = json.loads(RECORD.read_text(encoding="utf-8"))
    return {name: Recorded(**row) for name, row in rows.items()}


def write_record(record: Record) -> None:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(asdict(row))}" for name, row in sorted(record.items()))
    RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def differences(before: Record, now: Record) -> list[str]:
    """One line for each answer that is another, is new or is gone."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'is new' if old is None else 'is gone'}")
        elif old != new:
            parts = [part for part in ("placed", "said") if getattr(old, part) != getattr(new, part)]
            lines.append(
                f"{name}: {' and '.join(parts)}; {old.price:.6g} → {new.price:.6g} $/h, {old.nodes} → {new.nodes} nodes, "
                f"{old.unplaced} → {new.unplaced} unplaced"
            )
    return lines


def summary(before: Record, now: Record) -> str:
    """How many differ, and whether for the better."""
    both = [(before[name], now[name]) for name in before if name in now]
    placed = [(old, new) for old, new in both if old.placed != new.placed]
    said = sum(old.placed == new.placed and old.said != new.said for old, new in both)
    parts = {
        "placed otherwise": len(placed),
        "of them cheaper": sum(new.price < old.price for old, new in placed),
        "dearer": sum(new.price > old.price for old, new in placed),
        "with fewer unplaced": sum(new.unplaced < old.unplaced for old, new in placed),
        "with more": sum(new.unplaced > old.unplaced for old, new in placed),
        "only said otherwise": said,
        "new": len(now.keys() - before.keys()),
        "gone": len(before.keys() - now.keys()),
    }
    return f"of {len({*before, *now})} answers: " + ", ".join(f"{count} {words}" for words, count in parts.items())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.answers")
    parser.add_argument("--only", default="", metavar="PREFIX", help="those whose names begin so")
    parser.add_argument("--write", action="store_true", help="make what is answered now the record")
    parser.add_argument("--show", metavar="NAME", help="print this answer in full")
    asked = parser.parse_args(arguments)
    if asked.show:
        return _show(asked.show)
    record = read_record()
    before = {name: row for name, row in record.items() if name.startswith(asked.only)}
    now = answered(asked.only)
    lines = differences(before, now)
    print("\n".join(lines) if lines else f"all {len(now)} answers are those of the record")
    if lines:
        print(summary(before, now))
    if asked.write:
        write_record({name: row for name, row in record.items() if name not in before} | now)
        return 0
    return 1 if lines else 0


def _show(name: str) -> int:
    found = next((ask for _, known, ask in questions(name) if known == name), None)
    if found is None:
        print(f"there is no answer {name}", file=sys.stderr)
        return 2
    print(found().text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
