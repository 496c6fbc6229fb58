"""When a schedule's start or end matches, and when each behavior is active, as arrays of instants.

A pattern matches where all its fields do, days and weekdays too (Karpenter design "Scheduled Capacity"). Absent minutes and
hours are 0, other absent fields match all. Matches come by calendar arithmetic: days first, then times of day, then instants. Nothing steps
through minutes, so the cost follows the number of matches.

A behavior is active from a match of its start until the next match of its end, half-open. Where a start and an end fall on the same
instant, the start wins. Times that a clock change moves to one instant keep their order on the wall clock, and the last decides. So a
window inside the skipped hour does not occur.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.timetable.time_zone import DAY, Seconds, dates_of, days_within, year_of, zone_offsets

LONGEST_GAP = 15_000
"""Days. The longest time between two matches is that of 29 February on one weekday: up to 40 years."""

_MARGIN = 2
"""Days by which local dates may differ from UTC's (Samoa once skipped a whole day)."""
Activity = NDArray[np.bool_]
"""A row for each behavior, a column for each instant."""
NONE = -1
"""Stands for the default where no behavior is active."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK_BACKS = (8, 72, 800, LONGEST_GAP)
"""Days before a span that are searched for its first state, each only if the one before has no match."""


@dataclass(frozen=True, slots=True)
class Matches:
    """When a pattern matches, ascending: N instants, each once."""

    instants: Seconds
    """Seconds since 1970 UTC (N)."""
    local: Seconds
    """The local time of each, as written (N); the last of those that a clock change moves to one instant."""


def matches(pattern: TimePattern, zone: str, start: int, end: int) -> Matches:
    """The matches in [start, end), which are seconds since 1970 UTC. Raises `Invalid` for an unknown zone."""
    first, last = start // DAY - _MARGIN, end // DAY + _MARGIN
    days = days_within(pattern.days, pattern.months, pattern.weekdays, first, last)
    local = (days[:, None] * DAY + _times(pattern.hours, pattern.minutes)[None, :]).ravel()
    instants = zone_offsets(zone, year_of(first * DAY), year_of(last * DAY)).to_utc(local)
    within = slice(int(instants.searchsorted(start)), int(instants.searchsorted(end)))
    instants, local = instants[within], local[within]
    again = instants[1:] == instants[:-1]  # several local times of one gap are one instant
    if again.any():
        latest = np.append(~again, True)
        instants, local = instants[latest], local[latest]
    return Matches(instants, local)


def can_match(pattern: TimePattern) -> bool:
    """Whether any date matches; 30 February does not exist. Every date falls on every weekday in some year."""
    return bool(dates_of(pattern.days, pattern.months))


def is_within(pattern: TimePattern, other: TimePattern) -> bool:
    """Whether `other` matches whenever the pattern does."""
    return (
        set(pattern.hours or (0,)) <= set(other.hours or (0,))
        and set(pattern.minutes or (0,)) <= set(other.minutes or (0,))
        and (other.weekdays is None or set(pattern.weekdays or range(7)) <= set(other.weekdays))
        and dates_of(pattern.days, pattern.months) <= dates_of(other.days, other.months)
    )


def matches_a_day(pattern: TimePattern) -> int:
    return len(pattern.hours or (0,)) * len(pattern.minutes or (0,))


@lru_cache(maxsize=1024)
def _times(hours: tuple[int, ...] | None, minutes: tuple[int, ...] | None) -> Seconds:
    times = {hour * 3600 + minute * 60 for hour in hours or (0,) for minute in minutes or (0,)}
    return np.array(sorted(times), dtype=np.int64)


def activities(schedule: Schedule, start: int, end: int) -> tuple[Seconds, Activity]:
    """The instants in [start, end) at which any behavior begins or ends, beginning with `start`, and which are active from there.

    start, end: seconds since 1970 UTC. Returns the instants (N) and the activity (behaviors × N) from each on. Raises
    `Invalid` for an unknown time zone.
    """
    edges = [_edges(behavior, schedule.timezone, start, end) for behavior in schedule.behaviors]
    first = np.array([start], dtype=np.int64)
    instants = np.sort(np.concatenate((first, *(times for _, times in edges))), kind="stable")
    instants = instants[first_of_each(instants)]
    active = np.empty((len(edges), len(instants)), dtype=bool)
    for row, (at_start, times) in enumerate(edges):
        passed = times.searchsorted(instants, side="right")
        active[row] = (passed & 1) != at_start
    return instants, active


def _edges(behavior: Behavior, zone: str, start: int, end: int) -> tuple[bool, Seconds]:
    """Whether the behavior is active at `start`, and the instants after that at which this changes."""
    earliest = start - _LOOK_BACKS[0] * DAY
    starts = matches(behavior.start, zone, earliest, end)
    ends = matches(behavior.end, zone, earliest, end)
    times = np.concatenate((ends.instants, starts.instants))
    order = np.argsort(times, kind="stable")
    begins = order >= len(ends.instants)
    times = times[order]
    together = (times[1:] == times[:-1]).nonzero()[0]  # an end and the start after it at the same instant
    if len(together):
        local = np.concatenate((ends.local, starts.local))[order]
        begins[together + 1] = local[together + 1] >= local[together]
    counts = _last_of_each(times)
    times, begins = times[counts], begins[counts]
    now = int(times.searchsorted(start, side="right"))
    active = bool(begins[now - 1]) if now else _was_active(behavior, zone, earliest)
    times, begins = times[now:], begins[now:]
    changes_state = np.empty(len(begins), dtype=bool)
    changes_state[:1] = begins[:1] != active
    np.not_equal(begins[1:], begins[:-1], out=changes_state[1:])
    return active, times[changes_state]


def _was_active(behavior: Behavior, zone: str, before: int) -> bool:
    """Whether the last match before the instant was one of its start."""
    if not can_match(behavior.start) or not can_match(behavior.end):
        return can_match(behavior.start)
    at = before
    for days in _LOOK_BACKS[1:]:
        earliest = before - days * DAY
        starts = matches(behavior.start, zone, earliest, at)
        ends = matches(behavior.end, zone, earliest, at)
        last_start, last_end = _last(starts), _last(ends)
        if last_start is not None or last_end is not None:
            return last_start is not None and (last_end is None or last_start >= last_end)
        at = earliest
    return False


def _last(found: Matches) -> tuple[int, int] | None:
    """The instant and the local time of the last match."""
    return (int(found.instants[-1]), int(found.local[-1])) if len(found.instants) else None


def winners_of(schedule: Schedule, active: Activity) -> Seconds:
    """The index of the behavior that counts from each instant on (N); `NONE` for the default."""
    winners = np.full(active.shape[1], NONE, dtype=np.int64)
    for index in reversed(ranking(schedule)):
        winners[active[index]] = index
    return winners


def ranking(schedule: Schedule) -> list[int]:
    """Indexes of the behaviors by rank: higher priority first, then the order of the spec."""
    return sorted(range(len(schedule.behaviors)), key=lambda index: (-schedule.behaviors[index].priority, index))


def first_of_each(values: Seconds) -> Seconds:
    differs = np.empty(len(values), dtype=bool)
    differs[:1] = True
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs.nonzero()[0]


def _last_of_each(values: Seconds) -> Activity:
    differs = np.empty(len(values), dtype=bool)
    differs[-1:] = True
    np.not_equal(values[1:], values[:-1], out=differs[:-1])
    return differs


def seconds_of(instant: datetime) -> int:
    """Seconds since 1970 UTC, rounded down: every edge is at a whole second."""
    return (instant - _EPOCH) // timedelta(seconds=1)


def seconds_up(instant: datetime) -> int:
    return -((_EPOCH - instant) // timedelta(seconds=1))


def instant_of(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
