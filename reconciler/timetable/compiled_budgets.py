"""Budgets in local time, and windows outside of which nothing may be disrupted, compiled into budgets in UTC.

They are compiled for whole months in UTC: eleven from the first of the present month, or fewer if these need more than 50 budgets.
They cover both sides of every clock change in that time, so nothing has to happen at the change itself. On the first of the
next month the budgets are compiled again, and agree with these while both are valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from reconciler.model.errors import Invalid
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.schedules import AllowWindow, CompiledBudgets, LocalBudgets
from reconciler.timetable.cron import Cron, parse_cron
from reconciler.timetable.local_windows import Interval, clipped, inverted, merged, minutes_of, open_intervals
from reconciler.timetable.recurrences import Recurrence, recurrences

MOST_BUDGETS = 50
"""maxItems of spec.disruption.budgets in Karpenter's CustomResourceDefinition."""
HORIZONS = (11, 5, 2)
"""Months to compile for; the first that fits is taken. Two is the least: the present month and the next."""
REASONS = ("Underutilized", "Empty", "Drifted")
"""Every reason that Karpenter 1.14 knows. Budgets name them one by one where allow-windows treat them differently."""
_UTC = "UTC"
_BLOCKED = "0"
_Sourced = tuple[int | None, DisruptionBudget]
_Windows = tuple[tuple[str, timedelta], ...]


def compiled(written: LocalBudgets, now: datetime) -> CompiledBudgets:
    """The budgets in UTC that mean the same. Raises `Invalid` when more than 50 are needed for two months.

    A schedule that Karpenter cannot evaluate, or that never fires, stays as it is, so that Karpenter treats it as before.
    """
    start = _month(now, 0)
    fewest = 0
    for months in HORIZONS:
        found = _over(written, start, months)
        if found is None:
            continue
        if len(found) <= MOST_BUDGETS:
            return CompiledBudgets(
                budgets=tuple(budget for _, budget in found),
                origins=tuple(origin for origin, _ in found),
                valid_from=start,
                renew_at=_month(start, 1),
                valid_until=_month(start, months),
            )
        fewest = len(found)
    raise Invalid(
        f"these windows need {fewest} budgets in UTC, more than the {MOST_BUDGETS} that a NodePool can have"
        if fewest
        else "these windows cannot be expressed as budgets in UTC",
        hint="use fewer windows, the same windows for all reasons, or weekdays instead of days of the month",
    )


def last_month_of(form: CompiledBudgets) -> datetime:
    """The beginning of the last month for which the budgets are valid. The budgets compiled then agree with these."""
    return _month(form.valid_until, -1)


def next_form(after: datetime) -> datetime:
    """The first instant after this one at which `compiled` may give other budgets."""
    return _month(after, 1)


def _month(moment: datetime, later: int) -> datetime:
    """The first of a month in UTC, `later` months after the moment's."""
    there = moment.astimezone(UTC)
    number = there.year * 12 + there.month - 1 + later
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)


def _over(written: LocalBudgets, start: datetime, months: int) -> list[_Sourced] | None:
    found: list[_Sourced] = []
    for index, budget in enumerate(written.budgets):
        one = _in_utc(budget, written.time_zone, start, months)
        if one is None:
            return None
        found += [(index, each) for each in one]
    for reasons, windows in _restrictions(written.allow_windows):
        items = _recurring(windows, written.time_zone, start, months, outside=True)
        if items is None:
            return None
        found += [(None, DisruptionBudget(_BLOCKED, reasons, *_window_of(item))) for item in items]
    return _without_repetition(found)


def _without_repetition(found: Iterable[_Sourced]) -> list[_Sourced]:
    """Drops budgets that equal an earlier one."""
    seen: set[DisruptionBudget] = set()
    kept = []
    for origin, budget in found:
        if budget not in seen:
            seen.add(budget)
            kept.append((origin, budget))
    return kept


def _in_utc(budget: DisruptionBudget, zone: str, start: datetime, months: int) -> list[DisruptionBudget] | None:
    cron = _cron_of(budget)
    if zone == _UTC or cron is None or cron.every is not None or cron.never_fires:
        return [budget]
    assert budget.schedule is not None
    assert budget.duration is not None
    items = _recurring(((budget.schedule, budget.duration),), zone, start, months, outside=False)
    if items is None:
        return None
    return [DisruptionBudget(budget.nodes, budget.reasons, *_window_of(item)) for item in items]


def _cron_of(budget: DisruptionBudget) -> Cron | None:
    if budget.schedule is None or budget.duration is None:
        return None
    try:
        return parse_cron(budget.schedule)
    except Invalid:
        return None


def _window_of(item: Recurrence | None) -> tuple[str | None, timedelta | None]:
    return (None, None) if item is None else (item.schedule, item.duration)


def _restrictions(lines: Sequence[AllowWindow]) -> list[tuple[tuple[str, ...] | None, _Windows]]:
    """Reasons (None: every reason) and the only windows in which they are allowed; other reasons are not restricted."""
    if all(line.reasons is None for line in lines):
        return [(None, tuple((line.schedule, line.duration) for line in lines))] if lines else []
    reasons_of: dict[_Windows, list[str]] = {}
    for reason in REASONS:
        windows = tuple(
            (line.schedule, line.duration) for line in lines if line.reasons is None or reason in line.reasons
        )
        if windows:
            reasons_of.setdefault(windows, []).append(reason)
    return [(tuple(reasons), windows) for windows, reasons in reasons_of.items()]


@lru_cache(maxsize=4096)
def _recurring(
    windows: _Windows, zone: str, start: datetime, months: int, *, outside: bool
) -> tuple[Recurrence | None, ...] | None:
    """What is open while a window is (outside: while none is). An item None: always open; no items: never."""
    begin, end = minutes_of(start), minutes_of(_month(start, months))
    # A month more on either side, so that windows across an end keep their true beginning and length.
    first, last = minutes_of(_month(start, -1)), minutes_of(_month(start, months + 1))
    opened: list[Interval] = []
    for schedule, duration in windows:
        opened += open_intervals(schedule, duration, zone, first, last)
    wanted = merged(opened)
    if outside:
        wanted = inverted(wanted, first, last)
    within = clipped(wanted, begin, end)
    if within == [(begin, end)]:
        return (None,)
    return recurrences([item for item in wanted if item[1] > begin and item[0] < end], begin, end) if within else ()
