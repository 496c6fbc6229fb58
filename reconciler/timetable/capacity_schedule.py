"""What a capacity schedule is worth: at an instant, next, and over a span. Called by plan, demand, the daemon and the commands.

A behavior is active from a match of its start until the next match of its end after that, half-open; a start at the very
instant of an end wins. Of several active ones the highest priority counts, then the first in the spec; with none the
default does (seed 004; priority is its outlook).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from reconciler.model.changes import ScheduleOutcome
from reconciler.model.schedules import Behavior, Schedule
from reconciler.model.timelines import Collision, ScheduleSpan, ScheduleTimeline
from reconciler.timetable.pattern import LONGEST_GAP, can_match, matches
from reconciler.timetable.zone import DAY, Seconds

Activity = NDArray[np.bool_]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK_BACKS = (8, 72, 800, LONGEST_GAP)
"""Days before a span that are looked at for how it begins, the next only when there was no match in the one before."""
_LOOK_AHEADS = (8, 72, *range(438, LONGEST_GAP, 366))
_NONE = -1


def state_at(schedule: Schedule, now: datetime) -> ScheduleOutcome:
    """The value now, the next other one and when it begins. Raises `Invalid` for a time zone that is not known."""
    current, following = _now_and_next(schedule, now)
    at, value = following if following is not None else (None, None)
    return ScheduleOutcome(schedule.ref.namespace, schedule.ref.name, current, value, at)


def next_change(schedule: Schedule, after: datetime) -> datetime | None:
    """The first instant after `after` from which the value is another; None: nothing changes any more."""
    _, following = _now_and_next(schedule, after)
    return following[0] if following is not None else None


def timeline(schedule: Schedule, start: datetime, end: datetime, now: datetime) -> ScheduleTimeline:
    """Every span in [start, end), and where behaviors collide; `now` is the instant of its outcome.

    Spans differ from their neighbours in the behavior, though perhaps not in the value. Raises `Invalid` for an unknown zone.
    """
    if end <= start:
        return ScheduleTimeline(schedule, state_at(schedule, now), start, end, ())
    instants, active = _activities(schedule, _seconds(start), _seconds_up(end))
    winners = _winners(schedule, active)
    begins = _first_of_each(winners)
    times = [start, *map(_instant, instants[begins[1:]].tolist()), end]
    found = winners[begins]
    indexes: list[int | None] = [*range(len(schedule.behaviors)), None]
    spans = tuple(
        map(
            ScheduleSpan,
            times[:-1],
            times[1:],
            _values(schedule)[found].tolist(),
            (indexes[winner] for winner in found.tolist()),
        )
    )
    collisions = _collisions(schedule, instants, active, start, end)
    return ScheduleTimeline(schedule, state_at(schedule, now), start, end, spans, collisions)


def changes(schedule: Schedule, start: datetime, end: datetime) -> tuple[Seconds, Seconds]:
    """Instants (seconds since 1970) from which the value is another, the first being `start`, and the values from there on:
    a timeline of many schedules without an object for each span."""
    instants, active = _activities(schedule, _seconds(start), _seconds_up(end))
    values = _values(schedule)[_winners(schedule, active)]
    begins = _first_of_each(values)
    return instants[begins], values[begins]


def _now_and_next(schedule: Schedule, now: datetime) -> tuple[int, tuple[datetime, int] | None]:
    start = _seconds(now)
    current: int | None = None
    for first, last in _spans_ahead(start):
        instants, active = _activities(schedule, first, last)
        values = _values(schedule)[_winners(schedule, active)]
        if current is None:
            current = int(values[0])
        other = np.flatnonzero(values != current)
        if len(other):
            return current, (_instant(int(instants[other[0]])), int(values[other[0]]))
        if not any(can_match(item.start) and item.replicas != current for item in schedule.behaviors) and (
            schedule.default_replicas == current
        ):
            break
    assert current is not None
    return current, None


def _spans_ahead(start: int) -> Iterator[tuple[int, int]]:
    before = start
    for days in _LOOK_AHEADS:
        yield before, start + days * DAY
        before = start + days * DAY


def _activities(schedule: Schedule, start: int, end: int) -> tuple[Seconds, Activity]:
    """The instants in [start, end) at which any behavior begins or ends, the first being `start`, and which behaviors
    (rows) are active from each on."""
    edges = [_edges(behavior, schedule.timezone, start, end) for behavior in schedule.behaviors]
    first = np.array([start], dtype=np.int64)
    instants = np.sort(np.concatenate((first, *(times for _, times in edges))), kind="stable")
    instants = instants[_first_of_each(instants)]
    active = np.empty((len(edges), len(instants)), dtype=bool)
    for row, (at_start, times) in enumerate(edges):
        passed = times.searchsorted(instants, side="right")
        active[row] = (passed & 1) != at_start
    return instants, active


def _edges(behavior: Behavior, zone: str, start: int, end: int) -> tuple[bool, Seconds]:
    """Whether it is active at `start`, and the instants after that at which this changes."""
    earliest = start - _LOOK_BACKS[0] * DAY
    starts = matches(behavior.start, zone, earliest, end)
    ends = matches(behavior.end, zone, earliest, end)
    times = np.concatenate((ends, starts))
    order = np.argsort(times, kind="stable")
    begins = order >= len(ends)
    times = times[order]
    counts = _last_of_each(times)  # of an end and a start at once, the start
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
        if len(starts) or len(ends):
            return bool(len(starts)) and (not len(ends) or bool(starts[-1] >= ends[-1]))
        at = earliest
    return False


def _winners(schedule: Schedule, active: Activity) -> Seconds:
    """The behavior that counts from each instant on; -1: none."""
    winners = np.full(active.shape[1], _NONE, dtype=np.int64)
    for index in reversed(ranking(schedule)):
        winners[active[index]] = index
    return winners


def ranking(schedule: Schedule) -> list[int]:
    """Indexes of the behaviors, the one that wins over all others first."""
    return sorted(range(len(schedule.behaviors)), key=lambda index: (-schedule.behaviors[index].priority, index))


def _values(schedule: Schedule) -> Seconds:
    """Replicas by behavior, the default last: where -1 points."""
    return np.array([*(item.replicas for item in schedule.behaviors), schedule.default_replicas], dtype=np.int64)


def _first_of_each(values: Seconds) -> Seconds:
    """Where runs of equal values begin."""
    differs = np.empty(len(values), dtype=bool)
    differs[:1] = True
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs.nonzero()[0]


def _last_of_each(values: Seconds) -> Activity:
    """Which values are the last of a run of equal ones."""
    differs = np.empty(len(values), dtype=bool)
    differs[-1:] = True
    np.not_equal(values[1:], values[:-1], out=differs[:-1])
    return differs


def _collisions(
    schedule: Schedule, instants: Seconds, active: Activity, start: datetime, end: datetime
) -> tuple[Collision, ...]:
    together = active.astype(np.float32) @ active.astype(np.float32).T
    order = ranking(schedule)
    found = []
    for rank, winner in enumerate(order):
        for loser in order[rank + 1 :]:
            if together[winner, loser]:
                both = active[winner] & active[loser]
                first = int(np.argmax(both))
                length = int(np.argmin(both[first:])) if not both[first:].all() else None
                begins = start if first == 0 else _instant(int(instants[first]))
                ends = end if length is None else _instant(int(instants[first + length]))
                found.append(Collision(begins, ends, winner, loser))
    return tuple(sorted(found, key=lambda item: (item.start, item.winner, item.loser)))


def _seconds(instant: datetime) -> int:
    """Rounded down: every edge is at a whole second."""
    return (instant - _EPOCH) // timedelta(seconds=1)


def _seconds_up(instant: datetime) -> int:
    return -((_EPOCH - instant) // timedelta(seconds=1))


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
