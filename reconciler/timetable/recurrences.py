"""Cron schedules in UTC that open exactly the given windows over some months.

Windows with the same time of day and length form a group. A group's days in a month are either a set of weekdays or a list of dates.
Months with the same days share a schedule. No schedule restricts both day fields, since to cron either is enough.
"""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from reconciler.timetable.local_windows import Interval, clipped, merged, moment_of, open_intervals

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EVERY_WEEKDAY = frozenset(range(7))
_FEWEST_IN_A_RANGE = 3
Month = tuple[int, int]
"""Year and month."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A window: open from each hit of the cron schedule, in UTC, for `duration`."""

    schedule: str
    duration: timedelta


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


def recurrences(intervals: Sequence[Interval], start: int, end: int) -> tuple[Recurrence, ...] | None:
    """Schedules that are open within [start, end) exactly where the intervals are; None if cron cannot express them.

    intervals: merged, but not clipped where they reach over start or end. start, end: minutes since 1970 UTC, both the beginning
    of a month, less than a year apart.
    """
    inside = [interval for interval in intervals if start <= interval[0] < end]
    carried = [interval for interval in intervals if interval[0] < start < interval[1]]
    wanted = clipped(intervals, start, end)
    months = _months(start, end)
    for more, whole_year in (([], True), (carried, True), (carried, False)):
        found = _schedules(inside, months, whole_year=whole_year) + [_once(interval) for interval in more]
        if _opened(found, start, end) == wanted:
            return tuple(found)
    return None


def _opened(found: Iterable[Recurrence], start: int, end: int) -> list[Interval]:
    return merged(
        interval for item in found for interval in open_intervals(item.schedule, item.duration, "UTC", start, end)
    )


def _once(interval: Interval) -> Recurrence:
    at = moment_of(interval[0])
    duration = timedelta(minutes=interval[1] - interval[0])
    return Recurrence(f"{at.minute} {at.hour} {at.day} {at.month} *", duration)


def _schedules(intervals: Iterable[Interval], months: Sequence[Month], *, whole_year: bool) -> list[Recurrence]:
    """whole_year: a schedule that is right in all these months gets `*` for its months."""
    groups: dict[tuple[int, int, int], dict[Month, set[int]]] = defaultdict(lambda: defaultdict(set))
    for begin, finish in intervals:
        at = moment_of(begin)
        groups[at.hour, at.minute, finish - begin][at.year, at.month].add(at.day)
    lines: dict[tuple[str, str, str, int], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for (hour, minute, length), dates in groups.items():
        for days, those in _alike(dates):
            fits = all(days.of(month) == frozenset(dates.get(month, ())) for month in months)
            month_field = "*" if whole_year and fits else _listed(month for _, month in those)
            lines[(*days.fields, month_field, length)][minute].add(hour)
    found = []
    for (day_field, weekday_field, month_field, length), hours_of in sorted(lines.items()):
        minutes_of: dict[frozenset[int], set[int]] = defaultdict(set)
        for minute, hours in hours_of.items():
            minutes_of[frozenset(hours)].add(minute)
        for those_hours, minutes in sorted(minutes_of.items(), key=lambda item: (sorted(item[0]), sorted(item[1]))):
            times = f"{_listed(minutes)} {_listed(those_hours)}"
            schedule = f"{times} {day_field} {month_field} {weekday_field}"
            found.append(Recurrence(schedule, timedelta(minutes=length)))
    return found


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
    begin, finish = moment_of(start), moment_of(end)
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
