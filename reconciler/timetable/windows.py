"""When a schedule's windows are open, in UTC or in local time: a cron hit opens one for a duration.

A window is [hit, hit + duration), in UTC; overlapping and touching windows are one span. Karpenter (`IsActive` of a budget)
asks: of the hits after `instant - duration`, is the first not later than the instant? So where there is never a hit, as on 30 February,
the window is open.

Windows in local time are headroom's own, and are not open then. A window lasts its duration in elapsed time, whatever the local clock
shows meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reconciler.timetable.cron import Cron, parse_cron
from reconciler.timetable.time_zone import DAY, year_of, zone_offsets

Ticks = tuple[int, int]
"""A span in whole microseconds since 1970 UTC: arithmetic over many spans is quicker on integers."""
Edges = npt.NDArray[np.int64]
"""Begin, end, begin, end … of ascending spans that do not touch, in ticks: shape (2 × spans,)."""
_NO_EDGES: Edges = np.empty(0, dtype=np.int64)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1) // _TICK
_SECOND = timedelta(seconds=1) // _TICK
_DAY = timedelta(days=1) // _TICK
FIRST_TICK = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _TICK
LAST_TICK = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _TICK
_SPARE_DAYS = 2
"""Days by which a local date may differ from the UTC date of the same instant."""


def ticks(instant: datetime) -> int:
    return (instant - EPOCH) // _TICK


def instant_of(tick: int) -> datetime:
    return EPOCH + timedelta(microseconds=tick)


def is_open(schedule: str, duration: timedelta, at: datetime) -> bool:
    """Whether a window is open at the instant. Raises `Invalid` for a schedule that cannot be evaluated."""
    return bool(len(open_edges(schedule, duration, ticks(at), ticks(at) + 1)))


def open_edges(schedule: str, duration: timedelta, start: int, end: int) -> Edges:
    """Where windows open and close within [start, end), all in ticks. Raises `Invalid` for a schedule that cannot be evaluated."""
    cron, length = parse_cron(schedule), duration // _TICK
    always: Edges = np.array([start, end], np.int64)
    if start >= end:
        return always[:0]
    if cron.never_fires:
        return always
    return cut(_windows(cron, length, start, end), start, end)


def local_edges(schedule: str, duration: timedelta, zone: str, start: int, end: int) -> Edges:
    """When windows in a zone's local time are open within [start, end), in ticks. Raises `Invalid` for a malformed schedule."""
    cron, length = parse_cron(schedule), duration // _TICK
    first, last = (start - length) // _DAY - _SPARE_DAYS, end // _DAY + _SPARE_DAYS
    times = [(hour * 60 + minute) * 60 for hour in cron.hours for minute in cron.minutes]
    seconds = np.add.outer(cron.days_within(first, last) * DAY, np.array(times, np.int64))
    offsets = zone_offsets(zone, year_of(first * DAY), year_of(last * DAY))
    hits = offsets.to_utc(seconds.ravel()) * _SECOND
    if length <= 0:
        hits = hits[:0]
    return cut(union([np.column_stack((hits, hits + length)).ravel()]), start, end)


def union(spans: Sequence[Edges]) -> Edges:
    begins = np.concatenate([_NO_EDGES, *(edges[::2] for edges in spans)])
    ends = np.concatenate([_NO_EDGES, *(edges[1::2] for edges in spans)])
    if not len(begins):
        return begins
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    is_first = np.concatenate(([True], begins[1:] > ends[:-1]))
    is_last = np.concatenate((is_first[1:], [True]))
    return np.column_stack((begins[is_first], ends[is_last])).ravel()


def is_within(inner: Edges, outer: Edges) -> bool:
    if not len(inner):
        return True
    if not len(outer):
        return False
    begins, ends = outer[::2], outer[1::2]
    first = int(begins.searchsorted(inner[0], side="right")) - 1
    if first < 0 or ends[first] < inner[1]:
        return False  # most that differ do so at once
    places = begins.searchsorted(inner[::2], side="right") - 1
    return bool((ends[places] >= inner[1::2]).all())


def cut(windows: Edges, start: int, end: int) -> Edges:
    """The parts of disjoint spans within [start, end): only the outermost can reach over an end."""
    opens, closes = windows[::2], windows[1::2]
    first = int(np.searchsorted(closes, start, side="right"))
    last = int(np.searchsorted(opens, end))
    # numpy's clip takes twice as long on arrays this short.
    return np.minimum(np.maximum(windows[2 * first : 2 * last], start), end)


def inverted(windows: Edges, start: int, end: int) -> Edges:
    """The parts of [start, end) that are in none of these disjoint spans."""
    edges = np.concatenate(([start], cut(windows, start, end), [end]))
    return edges.reshape(-1, 2)[edges[::2] < edges[1::2]].ravel()


def _windows(cron: Cron, length: int, start: int, end: int) -> Edges:
    """Every window that reaches into [start, end), ascending, joined."""
    if not length:
        return _NO_EDGES
    pattern = _day_pattern(cron.hours, cron.minutes, length)
    first_day = max(start - length, FIRST_TICK) // _DAY
    days = cron.days_within(first_day, min(end, LAST_TICK) // _DAY)
    windows = np.add.outer(days * _DAY, pattern).ravel()
    are_apart = pattern[-1] < pattern[0] + _DAY
    return windows if are_apart else union([windows])


@lru_cache(maxsize=256)
def _day_pattern(hours: tuple[int, ...], minutes: tuple[int, ...], length: int) -> Edges:
    """The windows of one day's hits, joined, as ticks from midnight; the last may reach into later days."""
    hits = np.array([(hour * 60 + minute) * _MINUTE for hour in hours for minute in minutes], np.int64)
    return union([np.column_stack((hits, hits + length)).ravel()])
