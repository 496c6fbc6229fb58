"""Budgets in local time, and windows outside of which nothing may be disrupted, compiled into budgets in UTC.

They are compiled for whole months in UTC: eleven from the first of the present month, or fewer if these need more than 50 budgets.
They cover both sides of every clock change in that time, so nothing has to happen at the change itself. On the first of the
next month the budgets are compiled again, and agree with these while both are valid.

A budget's cron schedules open exactly the given windows. Windows with the same time of day and length form a group. A group's days in a
month are either a set of weekdays or a list of dates. Months with the same days share a schedule. No schedule restricts both day fields,
since to cron either is enough.
"""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from reconciler.model.errors import Invalid
from reconciler.model.nodes import REASONS, DisruptionBudget
from reconciler.model.schedules import AllowWindow, CompiledBudgets, LocalBudgets
from reconciler.timetable.cron import Cron, parse_cron
from reconciler.timetable.windows import Edges, Ticks, cut, instant_of, inverted, local_edges, ticks, union

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EVERY_WEEKDAY = frozenset(range(7))
_FEWEST_IN_A_RANGE = 3
Month = tuple[int, int]
"""Year and month."""
MOST_BUDGETS = 50
"""maxItems of spec.disruption.budgets in Karpenter's CustomResourceDefinition."""
HORIZONS = (11, 5, 2)
"""Months to compile for; the first that fits is taken. Two is the least: the present month and the next."""
_UTC = "UTC"
_BLOCKED = "0"
_Sourced = tuple[int | None, DisruptionBudget]
Recurrence = tuple[str, timedelta]
"""A window: open from each hit of the cron schedule for that long."""
_Windows = tuple[Recurrence, ...]
_ALWAYS = (None, None)
"""Schedule and duration of a budget without a window."""


@dataclass(frozen=True, slots=True)
class _Days:
    """The day fields of a schedule. All seven weekdays are `*`; empty days are not restricted."""

    weekdays: frozenset[int] = _EVERY_WEEKDAY
    days: frozenset[int] = frozenset()

    def of(self, month: Month) -> frozenset[int]:
        return _of_month(self.weekdays, self.days, *monthrange(*month))

    @property
    def fields(self) -> tuple[str, str]:
        days = _listed(self.days) if self.days else "*"
        return days, "*" if self.weekdays == _EVERY_WEEKDAY else _listed(self.weekdays, _WEEKDAYS)


@lru_cache(maxsize=1024)
def _of_month(weekdays: frozenset[int], days: frozenset[int], first: int, length: int) -> frozenset[int]:
    """The days of a month with these weekdays or dates. first: the weekday of its first day, 0 is Monday. length: its days."""
    return frozenset(day for day in range(1, length + 1) if (not days or day in days) and (first + day) % 7 in weekdays)


def recurrences(windows: Edges, start: int, end: int) -> tuple[Recurrence, ...] | None:
    """Schedules that are open within [start, end) exactly where the windows are; None if cron cannot express them.

    windows: joined, but not cut where they reach over start or end. start, end: in ticks, both the beginning of a month, less than a
    year apart.
    """
    spans = list(zip(windows[::2].tolist(), windows[1::2].tolist(), strict=True))
    inside = [span for span in spans if start <= span[0] < end]
    carried = [span for span in spans if span[0] < start < span[1]]
    wanted = cut(windows, start, end)
    months = _months(start, end)
    for more, whole_year in (([], True), (carried, True), (carried, False)):
        schedules = _schedules(inside, months, whole_year=whole_year) + [_once(span) for span in more]
        opened = [local_edges(*item, _UTC, start, end) for item in schedules]
        if np.array_equal(union(opened), wanted):
            return tuple(schedules)
    return None


def _once(span: Ticks) -> Recurrence:
    at = instant_of(span[0])
    return f"{at.minute} {at.hour} {at.day} {at.month} *", instant_of(span[1]) - at


def _schedules(spans: Iterable[Ticks], months: Sequence[Month], *, whole_year: bool) -> list[Recurrence]:
    """whole_year: a schedule that is right in all these months gets `*` for its months."""
    groups: dict[tuple[int, int, int], dict[Month, set[int]]] = defaultdict(lambda: defaultdict(set))
    for begin, finish in spans:
        at = instant_of(begin)
        groups[at.hour, at.minute, finish - begin][at.year, at.month].add(at.day)
    lines: dict[tuple[str, str, str, int], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for (hour, minute, length), dates in groups.items():
        for days, those in _alike(dates):
            fits = all(days.of(month) == frozenset(dates.get(month, ())) for month in months)
            month_field = "*" if whole_year and fits else _listed(month for _, month in those)
            lines[(*days.fields, month_field, length)][minute].add(hour)
    schedules = []
    for (day_field, weekday_field, month_field, length), hours_of in sorted(lines.items()):
        minutes_of: dict[frozenset[int], set[int]] = defaultdict(set)
        for minute, hours in hours_of.items():
            minutes_of[frozenset(hours)].add(minute)
        for those_hours, minutes in sorted(minutes_of.items(), key=lambda item: (sorted(item[0]), sorted(item[1]))):
            times = f"{_listed(minutes)} {_listed(those_hours)}"
            schedule = f"{times} {day_field} {month_field} {weekday_field}"
            schedules.append((schedule, timedelta(microseconds=length)))
    return schedules


def _alike(dates: Mapping[Month, set[int]]) -> list[tuple[_Days, list[Month]]]:
    """The months of one group, joined where the same day fields are right for all of them."""
    by_weekday: dict[frozenset[int], list[Month]] = defaultdict(list)
    by_day: list[tuple[_Days, list[Month]]] = []
    for month in sorted(dates):
        there = frozenset(dates[month])
        first, _ = monthrange(*month)
        weekdays = frozenset((first + day) % 7 for day in there)
        if _Days(weekdays).of(month) == there:
            by_weekday[weekdays].append(month)
            continue
        for index, (days, those) in enumerate(by_day):
            both = _Days(days=days.days | there)
            if all(both.of(other) == frozenset(dates[other]) for other in (*those, month)):
                by_day[index] = (both, [*those, month])
                break
        else:
            by_day.append((_Days(days=there), [month]))
    return [(_Days(weekdays), those) for weekdays, those in by_weekday.items()] + by_day


def _months(start: int, end: int) -> list[Month]:
    begin, finish = instant_of(start), instant_of(end)
    numbers = range(begin.year * 12 + begin.month - 1, finish.year * 12 + finish.month - 1)
    return [(number // 12, number % 12 + 1) for number in numbers]


def _listed(numbers: Iterable[int], names: Sequence[str] = ()) -> str:
    """`1-5,7`, or by name `mon-fri,sun`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = []
    for run in runs:
        texts = [names[number] if names else str(number) for number in run]
        words += [f"{texts[0]}-{texts[-1]}"] if len(run) >= _FEWEST_IN_A_RANGE else texts
    return ",".join(words)


def compiled(written: LocalBudgets, now: datetime) -> CompiledBudgets:
    """The budgets in UTC that mean the same. Raises `Invalid` when more than 50 are needed for two months.

    A schedule that Karpenter cannot evaluate, or that never fires, stays as it is, so that Karpenter treats it as before.
    """
    start = _month(now, 0)
    fewest = 0
    for months in HORIZONS:
        sourced = _over(written, start, months)
        if sourced is None:
            continue
        if len(sourced) <= MOST_BUDGETS:
            return CompiledBudgets(
                budgets=tuple(budget for _, budget in sourced),
                origins=tuple(origin for origin, _ in sourced),
                renew_at=_month(start, 1),
                valid_until=_month(start, months),
            )
        fewest = len(sourced)
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
    sourced: list[_Sourced] = []
    for index, budget in enumerate(written.budgets):
        one = _in_utc(budget, written.time_zone, start, months)
        if one is None:
            return None
        sourced += [(index, each) for each in one]
    for reasons, windows in _restrictions(written.allow_windows):
        items = _recurring(windows, written.time_zone, start, months, outside=True)
        if items is None:
            return None
        sourced += [(None, DisruptionBudget(_BLOCKED, reasons, *(item or _ALWAYS))) for item in items]
    return _without_repetition(sourced)


def _without_repetition(found: Iterable[_Sourced]) -> list[_Sourced]:
    seen: set[DisruptionBudget] = set()
    kept = []
    for origin, budget in found:
        if budget not in seen:
            seen.add(budget)
            kept.append((origin, budget))
    return kept


def _in_utc(budget: DisruptionBudget, zone: str, start: datetime, months: int) -> list[DisruptionBudget] | None:
    cron = _cron_of(budget)
    if zone == _UTC or cron is None or cron.never_fires:
        return [budget]
    assert budget.schedule is not None
    assert budget.duration is not None
    items = _recurring(((budget.schedule, budget.duration),), zone, start, months, outside=False)
    if items is None:
        return None
    return [DisruptionBudget(budget.nodes, budget.reasons, *(item or _ALWAYS)) for item in items]


def _cron_of(budget: DisruptionBudget) -> Cron | None:
    if budget.schedule is None or budget.duration is None:
        return None
    try:
        return parse_cron(budget.schedule)
    except Invalid:
        return None


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
    begin, end = ticks(start), ticks(_month(start, months))
    # A month more on either side, so that windows across an end keep their true beginning and length.
    first, last = ticks(_month(start, -1)), ticks(_month(start, months + 1))
    wanted = union([local_edges(schedule, duration, zone, first, last) for schedule, duration in windows])
    if outside:
        wanted = inverted(wanted, first, last)
    if cut(wanted, begin, end).tolist() == [begin, end]:
        return (None,)
    near = (wanted[1::2] > begin) & (wanted[::2] < end)
    return recurrences(wanted[near.repeat(2)], begin, end) if near.any() else ()
