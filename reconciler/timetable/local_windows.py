"""When windows written in local time are open, in UTC.

Times are whole minutes since 1970, so that a year of windows is cheap to merge, invert and compare. A local time that does
not exist becomes the next that does; one that occurs twice counts once, at the first. A window lasts its duration in elapsed
time, whatever the local clock shows meanwhile.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from reconciler.timetable.cron import Cron, parse_cron

Interval = tuple[int, int]
"""Minutes since 1970 in UTC, half-open."""

MINUTES_A_DAY = 24 * 60
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = _EPOCH.date().toordinal()
_SPARE_DAYS = 2
"""Days by which a local date may differ from the UTC date of the same instant."""


def minutes_of(moment: datetime) -> int:
    """Minutes since 1970 UTC, rounded down."""
    return (moment - _EPOCH) // _MINUTE


def moment_of(minutes: int) -> datetime:
    return _EPOCH + minutes * _MINUTE


def open_intervals(schedule: str, duration: timedelta, zone: str, start: int, end: int) -> list[Interval]:
    """Where the windows are open within [start, end), merged and clipped. Raises `Invalid` for a malformed schedule.

    duration: whole minutes; start, end: minutes since 1970 UTC. Windows that opened before the span count too.
    """
    return clipped(merged(_windows(parse_cron(schedule), duration // _MINUTE, zone, start, end)), start, end)


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorted, with intervals that overlap or touch joined."""
    joined: list[Interval] = []
    until = -math.inf
    for interval in sorted(intervals):
        begin, finish = interval
        if finish <= begin:
            continue
        if begin > until:
            joined.append(interval)
            until = finish
        elif finish > until:
            joined[-1] = (joined[-1][0], finish)
            until = finish
    return joined


def clipped(intervals: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """What merged intervals have of [start, end)."""
    first = bisect_right(intervals, start, key=lambda item: item[1])
    inside = list(intervals[first : bisect_left(intervals, end, key=lambda item: item[0])])
    if inside:
        inside[0] = (max(inside[0][0], start), inside[0][1])
        inside[-1] = (inside[-1][0], min(inside[-1][1], end))
    return inside


def inverted(intervals: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """The parts of [start, end) that are in none of these merged intervals."""
    gaps: list[Interval] = []
    since = start
    for begin, finish in clipped(intervals, start, end):
        if begin > since:
            gaps.append((since, begin))
        since = finish
    if since < end:
        gaps.append((since, end))
    return gaps


def _windows(cron: Cron, length: int, zone: str, start: int, end: int) -> list[Interval]:
    if length <= 0 or not cron.minutes or not cron.hours:
        return []
    first = start // MINUTES_A_DAY - length // MINUTES_A_DAY - _SPARE_DAYS
    last = end // MINUTES_A_DAY + _SPARE_DAYS
    times = [hour * 60 + minute for hour in cron.hours for minute in cron.minutes]
    of_a_day = merged((time, time + length) for time in times)
    offsets = _Offsets(zone, first - _SPARE_DAYS, last + _SPARE_DAYS)
    windows: list[Interval] = []
    for day in _days(cron, first, last):
        midnight = day * MINUTES_A_DAY
        offset = offsets.of_whole_day(midnight)
        if offset is None:
            hits = [offsets.in_utc(midnight + time) for time in times]
            windows += [(hit, hit + length) for hit in hits]
        else:
            midnight -= offset
            windows += [(midnight + begin, midnight + finish) for begin, finish in of_a_day]
    return windows


def _days(cron: Cron, first: int, last: int) -> Iterator[int]:
    """Days since 1970 on which the schedule hits, from first to last."""
    begin, finish = date.fromordinal(_FIRST_DAY + first), date.fromordinal(_FIRST_DAY + last)
    for year in range(begin.year, finish.year + 1):
        for month in range(1, 13):
            if not (begin.year, begin.month) <= (year, month) <= (finish.year, finish.month):
                continue
            before = date(year, month, 1).toordinal() - 1 - _FIRST_DAY
            for day in cron.rule.days_of(year, month):
                if first <= before + day <= last:
                    yield before + day


class _Offsets:
    """Converts local time to UTC over a span of days."""

    def __init__(self, zone: str, first: int, last: int) -> None:
        self._initial, self._changes = _transitions(zone, first, last)

    def in_utc(self, local: int) -> int:
        """The UTC minute of a local one: in a gap the instant of the change, of two occurrences the first."""
        offset = self._initial
        for at, before, after in self._changes:
            if local < at + before:
                break
            if local < at + after:
                return at
            offset = after
        return local - offset

    def of_whole_day(self, midnight: int) -> int | None:
        """The offset of every local minute of the day; None where it changes on that day."""
        offset = self._initial
        for at, before, after in self._changes:
            if midnight + MINUTES_A_DAY <= at + before:
                break
            if midnight < at + max(before, after):
                return None
            offset = after
        return offset


@lru_cache(maxsize=1024)
def _transitions(zone: str, first: int, last: int) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    """The offset on the first of these days, and each change as (instant, offset before, offset after), in minutes."""
    from reconciler.zone_data import time_zone

    place = time_zone(zone)

    def offset_at(minutes: int) -> int:
        offset = place.utcoffset(moment_of(minutes).astimezone(place))
        return 0 if offset is None else offset // _MINUTE

    initial = before = offset_at(first * MINUTES_A_DAY)
    changes = []
    for day in range(first, last + 1):
        low, high = day * MINUTES_A_DAY, (day + 1) * MINUTES_A_DAY
        after = offset_at(high)
        if after == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_at(middle) == before else (low, middle)
        changes.append((high, before, after))
        before = after
    return initial, tuple(changes)
