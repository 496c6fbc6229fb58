"""Disruption budgets that do something other than they seem to, and the annotation `headroom.dev/allow-windows`.

The annotation has one window a line, `SCHEDULE for DURATION [REASON…]`. `0 22 * * mon-fri for 8h` is one, and `0 2 * * sat for 4h Drifted` another.
Schedules and durations are those of disruption budgets, in the zone of `headroom.dev/timezone`.

Each finding about budgets is a mistake that people have made. Windows are compared over one year without a 29 February.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import nearest
from reconciler.model import codes
from reconciler.model.errors import Invalid
from reconciler.model.nodes import REASON_OF, REASONS
from reconciler.model.quantity import parse_duration, whole_number
from reconciler.model.refs import Path
from reconciler.model.schedules import AllowWindow
from reconciler.timetable.cron import Cron, parse_cron

ALLOW_WINDOWS = "headroom.dev/allow-windows"
TIME_ZONE = "headroom.dev/timezone"
EXAMPLE = "0 22 * * mon-fri for 8h"


def allow_windows_of(text: str) -> tuple[AllowWindow, ...]:
    """The windows in the annotation's text. Raises `Invalid` for the first malformed line, naming it."""
    windows = tuple(_of_line(number, line) for number, line in _lines(text))
    if not windows:
        raise Invalid(f"{ALLOW_WINDOWS} names no window", hint=f'write one on each line, such as "{EXAMPLE}"')
    return windows


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        if written:
            yield number, written


def _of_line(number: int, line: str) -> AllowWindow:
    schedule, word, rest = line.partition(" for ")
    if not word:
        raise _wrong(number, f"{line!r} has no duration", f'write "SCHEDULE for DURATION", such as "{EXAMPLE}"')
    length, *reasons = rest.replace(",", " ").split() or [""]
    try:
        cron = parse_cron(schedule)
    except Invalid as error:
        raise _wrong(number, error.message, error.hint) from error
    if cron.never_fires:
        raise _wrong(number, f"{schedule.strip()!r} never fires, so nothing would ever be allowed", "correct the date")
    return AllowWindow(" ".join(schedule.split()), _duration(number, length), _reasons(number, reasons))


def _duration(number: int, text: str) -> timedelta:
    hint = "write hours and minutes, such as 8h or 8h30m"
    try:
        duration = parse_duration(text)
    except Invalid as error:
        raise _wrong(number, error.message, error.hint) from error
    if duration % timedelta(minutes=1):
        raise _wrong(number, f"{text!r} is not a duration in hours and minutes", hint)
    if not duration:
        raise _wrong(number, "a window of zero length is never open", hint)
    return duration


def _reasons(number: int, words: list[str]) -> tuple[str, ...] | None:
    reasons = []
    for word in words:
        reason = REASON_OF.get(word.lower())
        if reason is None:
            hint = nearest(word, REASONS) or f"write {', '.join(REASONS)}, or none of them for every reason"
            raise _wrong(number, f"{word!r} is not a disruption reason", hint)
        reasons.append(reason)
    return tuple(sorted(set(reasons), key=REASONS.index)) if reasons else None


def _wrong(number: int, message: str, hint: str) -> Invalid:
    return Invalid(f"{ALLOW_WINDOWS}, line {number}: {message}", hint=hint)


if TYPE_CHECKING:
    from reconciler.timetable.windows import Edges

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_YEAR = ((datetime(2026, 1, 1, tzinfo=UTC) - _EPOCH) // _TICK, (datetime(2027, 1, 1, tzinfo=UTC) - _EPOCH) // _TICK)
"""Begin and end, in microseconds since 1970 UTC, as for all intervals here."""
_BUDGETS: Path = ("spec", "disruption", "budgets")
DEFAULT_NODES = "10%"
"""What the API server writes into a budget without `nodes`."""
_LARGEST_COUNT = 2**31 - 1
_EVERY_STEP = re.compile(r"\*/\d+")
_DAY, _WEEKDAY = 2, 4


@dataclass(frozen=True, slots=True)
class _Budget:
    """A budget that Karpenter can evaluate. amount: nodes, or percent with is_share.

    open: begin and end of its windows in the year, alternating; None: always open.
    """

    index: int
    amount: int
    is_share: bool
    reasons: frozenset[str]
    open: Edges | None

    @property
    def is_always_open(self) -> bool:
        return self.open is None

    @property
    def path(self) -> Path:
        return (*_BUDGETS, self.index)

    def holds_back(self, other: _Budget) -> bool:
        """Whether it allows no more than the other whenever that one is open, for any number of nodes."""
        comparable = self.amount == 0 or self.is_share == other.is_share
        return comparable and self.amount <= other.amount and _is_within(other.open, self.open)


def check_budgets(inspection: Inspection, budgets: Sequence[Mapping[str, Any]]) -> None:
    """Reports on the budgets of one NodePool, which satisfy its schema."""
    read_budgets = [_read(inspection, index, budget) for index, budget in enumerate(budgets)]
    readable = [budget for budget in read_budgets if budget is not None]
    if len(readable) < len(budgets):
        return  # what the other budgets do depends on the one already reported
    if not _always_zero(inspection, readable):
        _never_binding(inspection, readable)
        _unbounded(inspection, readable)


def _read(inspection: Inspection, index: int, budget: Mapping[str, Any]) -> _Budget | None:
    path: Path = (*_BUDGETS, index)
    opened = _opened(inspection, path, budget)
    nodes = str(budget.get("nodes", DEFAULT_NODES))
    count = whole_number(nodes.removesuffix("%"))
    if opened is False or budget.get("reasons") == [] or count is None or count > _LARGEST_COUNT:
        return None
    reasons = frozenset(budget.get("reasons") or REASONS)
    return _Budget(index, count, nodes.endswith("%"), reasons, opened)


def _opened(inspection: Inspection, path: Path, budget: Mapping[str, Any]) -> Edges | Literal[False] | None:
    """When the budget is open, None for always; False where it cannot be evaluated."""
    schedule = budget.get("schedule")
    if schedule is None or "duration" not in budget:
        return None if schedule is None and "duration" not in budget else False
    where = (*path, "schedule")
    try:
        cron = parse_cron(schedule)
    except Invalid as error:
        inspection.report(
            codes.BUDGET_NOT_EVALUATED,
            where,
            f"{error.message}: Karpenter cannot evaluate it, and then allows no disruption of this pool for any reason",
            hint=error.hint,
        )
        return False
    if cron.never_fires:
        inspection.report(
            codes.SCHEDULE_NEVER_HITS,
            where,
            f"{schedule} never fires, and Karpenter treats such a budget as open all the time",
            hint="correct the date; for a budget that always counts, remove schedule and duration",
        )
        return False
    _check_days(inspection, where, schedule, cron)
    try:
        duration = parse_duration(budget["duration"])
    except Invalid:
        return False  # too long, which its schema tells
    if not duration:
        inspection.report(
            codes.SCHEDULE_NEVER_HITS,
            (*path, "duration"),
            f"a window of {budget['duration']} has zero length, so this budget is never open",
            hint="write how long it lasts, such as 8h; for a budget that always counts, remove schedule and duration",
        )
        return False
    return _open_in_a_year(schedule, duration)


@lru_cache(maxsize=256)
def _open_in_a_year(schedule: str, duration: timedelta) -> Edges | None:
    from reconciler.timetable.windows import open_edges

    edges = open_edges(schedule, duration, *_YEAR)
    return None if tuple(edges.tolist()) == _YEAR else edges


def _check_days(inspection: Inspection, path: Path, schedule: str, cron: Cron) -> None:
    if not cron.either:
        return
    fields = schedule.split()
    step = _EVERY_STEP.fullmatch(fields[_DAY]) or _EVERY_STEP.fullmatch(fields[_WEEKDAY])
    why = f"{step[0]} restricts the field, unlike a bare star" if step else "cron takes either of the two"
    inspection.report(
        codes.DAY_OR_WEEKDAY,
        path,
        f"{schedule} fires on days {fields[_DAY]} and also on every {fields[_WEEKDAY]}, whatever the date: {why}",
        hint="write * for the days of the month or for the weekdays",
    )


def _always_zero(inspection: Inspection, budgets: Sequence[_Budget]) -> bool:
    zeros = [item for item in budgets if item.amount == 0 and item.is_always_open and item.reasons >= set(REASONS)]
    if not zeros or len(budgets) == 1:
        return bool(zeros)
    inspection.report(
        codes.ALWAYS_ZERO,
        zeros[0].path,
        "this budget of 0 is open all the time and counts for every reason, so that no other budget ever allows anything",
        hint="give it schedule and duration that leave time between them, or name fewer reasons; to allow only some windows, "
        f"write {ALLOW_WINDOWS}",
    )
    return True


def _never_binding(inspection: Inspection, budgets: Sequence[_Budget]) -> None:
    silent: dict[int, list[_Budget]] = {}
    always = [item for item in budgets if item.is_always_open]
    for item in reversed(budgets):  # of two equivalent budgets the later one is reported
        for able in (always, budgets):  # windows are compared only where no always open budget decides
            stricter = [
                other for other in able if other is not item and other.index not in silent and other.holds_back(item)
            ]
            if item.reasons <= {reason for other in stricter for reason in other.reasons}:
                silent[item.index] = stricter
                break
    for item in budgets:
        if item.index not in silent:
            continue
        names = [f"budgets[{other.index}]" for other in _deciding(item, silent[item.index])]
        by = " and ".join(names)
        inspection.report(
            codes.BUDGET_NEVER_BINDS,
            item.path,
            f"this budget never decides: whenever it is open, {by} {'allows' if len(names) == 1 else 'allow'} no more,"
            " and the least one counts",
            hint="remove it, or make the other one count only in windows or for fewer reasons",
        )


def _deciding(item: _Budget, stricter: Sequence[_Budget]) -> list[_Budget]:
    """For each reason of the budget the strictest other one. These decide in its place; each is listed once."""
    strictest: dict[int, _Budget] = {}
    for reason in sorted(item.reasons):
        able = [other for other in stricter if reason in other.reasons]
        best = min(able, key=lambda other: (other.amount, not item.reasons <= other.reasons, other.index))
        strictest[best.index] = best
    return [strictest[index] for index in sorted(strictest)]


def _unbounded(inspection: Inspection, budgets: Sequence[_Budget]) -> None:
    """Reports a reason that is limited only in windows. Outside them it is unlimited, while people expect the default of 10%."""
    if ALLOW_WINDOWS in mapping_at(inspection.body, "metadata", "annotations"):
        return
    told: dict[int, list[str]] = {}
    for reason in REASONS:
        about = [item for item in budgets if reason in item.reasons]
        if about and not _cover_the_year([item.open for item in about]):
            told.setdefault(about[0].index, []).append(reason)
    for index, reasons in told.items():
        of_all = len(reasons) == len(REASONS)
        inspection.report(
            codes.UNBOUNDED_OUTSIDE_WINDOWS,
            (*_BUDGETS, index, "schedule"),
            "outside of its windows nothing limits disruption"
            + ("" if of_all else f" for {' and '.join(reasons)}")
            + ": every node may go at once",
            hint='add a budget without schedule, such as nodes: "10%"; to allow disruption only in windows, '
            f"write {ALLOW_WINDOWS}",
        )


def _cover_the_year(opened: Sequence[Edges | None]) -> bool:
    """Whether one of the budgets is open at any time."""
    from reconciler.timetable.windows import union

    scheduled = [edges for edges in opened if edges is not None]
    return len(scheduled) < len(opened) or tuple(union(scheduled).tolist()) == _YEAR


def _is_within(inner: Edges | None, outer: Edges | None) -> bool:
    """Whether `outer` is open whenever `inner` is. None: always open."""
    from reconciler.timetable.windows import is_within

    return outer is None or (inner is not None and is_within(inner, outer))
