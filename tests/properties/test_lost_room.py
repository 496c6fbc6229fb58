"""What loses room by a change, in the 30 days of one report, is what an oracle finds that plans both sides in every state of the schedules.

HEADROOM_PAIRS sets how many pairs of repositories are made.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests import manifests
from tests.fakes.embedded import workload
from tests.unit.cli.two_folders import POOL, SHAPE, Document, Folders

PAIRS = int(os.environ.get("HEADROOM_PAIRS", "3"))
START = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def schedule(name: str, pick: random.Random) -> str:
    first = pick.randrange(1, 20)
    days = ",".join(sorted(pick.sample(DAYS, pick.randrange(1, 5)), key=DAYS.index))
    start, end = (f'weekdays: "{days}", hours: {hour}' for hour in (first, first + pick.randrange(1, 4)))
    return manifests.schedule(name, pick.randrange(2, 9), start, end, default=pick.randrange(3))


def buffer(name: str, pick: random.Random) -> str:
    of, size, marks = manifests.BY_TEMPLATE, "", {}
    match pick.choice(["replicas", "limits", "share", "follows"]):
        case "replicas":
            size = f"replicas: {pick.randrange(0, 9)}"
        case "limits":
            size = f"limits: {{cpu: {pick.randrange(1, 9)}}}"
        case "share":
            of = "scalableRef: {apiGroup: apps, kind: Deployment, name: app}"
            size = f"percentage: {pick.choice([10, 30, 50])}"
        case _:
            marks = {"replicas_from": pick.choice(["early", "late"])}
    return manifests.buffer(name, size, of=of, **marks)


def repository(pick: random.Random) -> dict[str, str]:
    files = {f"{name}.yaml": buffer(name, pick) for name in ("one", "two", "three", "four")}
    files |= {f"{name}.yaml": schedule(name, pick) for name in ("early", "late")}
    deployment = json.dumps(workload("app", replicas=pick.randrange(1, 12), cpu="2"))
    return files | {
        "pool.yaml": POOL.replace("400", pick.choice(["400", "24"])),
        "shape.yaml": SHAPE,
        "app.yaml": deployment,
    }


def changed(files: dict[str, str], pick: random.Random) -> dict[str, str]:
    """One to three of the files as another repository has them, or none; some pods of another size."""
    other = repository(pick)
    found = dict(files)
    for name in pick.sample(sorted(found), pick.randrange(1, 4)):
        if name in {"pool.yaml", "shape.yaml"}:
            found[name] = other[name].replace('cpu: "1"', f'cpu: "{pick.choice([1, 2])}"')
        elif pick.random() < 0.3:
            del found[name]
        else:
            found[name] = other[name]
    return found


def states(*sides: dict[str, str]) -> Iterator[datetime]:
    """The first hour of each state that the schedules of both sides are in together, read from their documents alone."""
    known = set()
    for hour in (START + index * timedelta(hours=1) for index in range(7 * 24)):
        state = tuple(is_up(side.get(f"{name}.yaml"), hour) for side in sides for name in ("early", "late"))
        if state not in known:
            known.add(state)
            yield hour


def is_up(text: str | None, hour: datetime) -> bool:
    if text is None:
        return False
    (behavior,) = yaml.safe_load(text)["spec"]["schedule"]["behaviors"]
    first, last = int(behavior["start"]["hours"]), int(behavior["end"]["hours"])
    return DAYS[hour.weekday()] in behavior["start"]["weekdays"].split(",") and first <= hour.hour < last


def places(plan: Document) -> dict[str, tuple[int, str]]:
    """How many chunks have a place, by buffer, and what one asks for."""
    rows = plan["demands"]
    return {
        row["name"]: ((row["desired"] or 0) - row["unplaced"], str(row.get("chunk"))) for row in rows if row["desired"]
    }


@pytest.mark.parametrize("seed", range(PAIRS))
def test_the_report_names_what_loses_room_at_any_time(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    before = repository(pick)
    after = changed(before, pick)
    folders = Folders(tmp_path)
    told = folders.document(after, before=before)
    expected = set()
    for hour in states(before, after):
        found = folders.document(after, before=before, now=hour.isoformat())
        left, right = places(found["base"]), places(found["head"])
        expected |= {name for name, (count, _) in left.items() if right.get(name, (0, ""))[0] < count}
    rows = told["changes"]["lessRoom"]
    assert {row["name"] for row in rows if (row["after"] or 0) < (row["before"] or 0)} == expected
    line = told["summary"]
    named = sum(f"shop/{row['name']} " in line.partition("ore room:")[0] for row in rows)
    assert named == len(rows) or f"and {len(rows) - named} more" in line
