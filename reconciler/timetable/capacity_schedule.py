"""The value of a capacity schedule: at an instant, next, over a span, and with a lead time; and behaviors that do not count as written.

A behavior is active from a match of its start until the next match of its end after that, half-open. Of several active ones
the highest priority counts, then the first in the spec; with none the default does (Karpenter design "Scheduled Capacity").

With a lead time the value rises earlier by the lead, and falls when the schedule does. At any instant it is the largest value of
[instant, instant + lead], both ends included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

import numpy as np

from reconciler.model.schedules import Schedule, ScheduleOutcome
from reconciler.model.timelines import Collision, ScheduleSpan, ScheduleTimeline
from reconciler.timetable.activity import (
    LONGEST_GAP,
    Activity,
    activities,
    can_match,
    first_of_each,
    instant_of,
    is_within,
    ranking,
    seconds_of,
    seconds_up,
    winners_of,
)
from reconciler.timetable.time_zone import DAY, Seconds

_LOOK_AHEADS = (8, 72, *range(438, LONGEST_GAP, 366))
"""Days to search for the beginning or end of a span, each only if the one before was not enough."""
_ANSWERS = 8
_INSTANT = timedelta(microseconds=1)
"""The resolution of `datetime`: added to the end, it makes a half-open span include it."""


def state_at(schedule: Schedule, now: datetime) -> ScheduleOutcome:
    """The value now, the next value that differs, and when that begins. Raises `Invalid` for an unknown time zone.

    The answer is cached until then, since passes ask far more often than values change.
    """
    last = _last_answer(schedule)
    for since, outcome in last:
        if since <= now and (outcome.next_value_time is None or now < outcome.next_value_time):
            return outcome
    outcome = _searched(schedule, now)
    last[:] = [*last[1 - _ANSWERS :], (now, outcome)]
    return outcome


@lru_cache(maxsize=4096)
def _last_answer(schedule: Schedule) -> list[tuple[datetime, ScheduleOutcome]]:  # noqa: ARG001 - what it is kept by
    """The last answers about a schedule, each with the instant from which it holds: each lead asks about an instant of its own."""
    return []


def next_change(schedule: Schedule, after: datetime) -> datetime | None:
    """The first instant after `after` at which the value changes; None if it never changes again."""
    return state_at(schedule, after).next_value_time


def timeline(schedule: Schedule, start: datetime, end: datetime, now: datetime) -> ScheduleTimeline:
    """Every span in [start, end), and where behaviors collide; `now` is the instant of the outcome.

    Neighbouring spans differ in their behavior, though not always in their value. Raises `Invalid` for an unknown zone.
    """
    if end <= start:
        return ScheduleTimeline(schedule, state_at(schedule, now), start, end, ())
    instants, active = activities(schedule, seconds_of(start), seconds_up(end))
    winners = winners_of(schedule, active)
    begins = first_of_each(winners)
    times = [start, *map(instant_of, instants[begins[1:]].tolist()), end]
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
    collisions = collisions_in(schedule, instants, active, start, end)
    return ScheduleTimeline(schedule, state_at(schedule, now), start, end, spans, collisions)


def _searched(schedule: Schedule, now: datetime) -> ScheduleOutcome:
    name, current = (schedule.ref.namespace, schedule.ref.name), None
    for first, last in _spans_ahead(seconds_of(now)):
        instants, active = activities(schedule, first, last)
        values = _values(schedule)[winners_of(schedule, active)]
        if current is None:
            current = int(values[0])
        other = np.flatnonzero(values != current)
        if len(other):
            return ScheduleOutcome(*name, current, int(values[other[0]]), instant_of(int(instants[other[0]])))
        if _is_forever(schedule, current):
            break
    assert current is not None
    return ScheduleOutcome(*name, current, None, None)


def _is_forever(schedule: Schedule, current: int) -> bool:
    """Whether the value can never change: every behavior that may begin has this value, and so has the default.

    The default does not matter if a behavior begins again at each of its ends."""
    begun = [item for item in schedule.behaviors if can_match(item.start)]
    return all(item.replicas == current for item in begun) and (
        schedule.default_replicas == current or any(is_within(item.end, item.start) for item in begun)
    )


def _spans_ahead(start: int) -> Iterator[tuple[int, int]]:
    before = start
    for days in _LOOK_AHEADS:
        yield before, start + days * DAY
        before = start + days * DAY


def _values(schedule: Schedule) -> Seconds:
    """Replicas by behavior; the default comes last, where index `NONE` (-1) finds it."""
    return np.array([*(item.replicas for item in schedule.behaviors), schedule.default_replicas], dtype=np.int64)


def value_with_lead(schedule: Schedule, lead: timedelta, at: datetime) -> int:
    """Replicas at the instant. Raises `Invalid` for an unknown time zone."""
    if not lead:
        return state_at(schedule, at).current_value
    return max(span.value for span in timeline(schedule, at, at + lead + _INSTANT, at).spans)


def spans_with_lead(
    schedule: Schedule, lead: timedelta, start: datetime, end: datetime
) -> tuple[tuple[datetime, datetime, int], ...]:
    """Spans as (start, end, replicas) that fill [start, end) without gaps; neighbours differ."""
    spans = timeline(schedule, start, end + lead, start).spans
    moments = {start, end}
    for span in spans:
        moments |= {moment for moment in (span.start - lead, span.end) if start < moment < end}
    begins, ends = [span.start - lead for span in spans], [span.end for span in spans]
    found: list[tuple[datetime, datetime, int]] = []
    for opens, closes in pairwise(sorted(moments)):
        # Each span counts from `lead` before it begins until it ends; where several do, the highest wins.
        value = max(span.value for span in spans[bisect_right(ends, opens) : bisect_right(begins, opens)])
        if found and found[-1][2] == value:
            found[-1] = (found[-1][0], closes, value)
        else:
            found.append((opens, closes, value))
    return tuple(found)


def next_look(schedule: Schedule, lead: timedelta, after: datetime) -> datetime | None:
    """The first instant after this one at which the value with lead may change; None: never again."""
    falls = next_change(schedule, after)
    rises = next_change(schedule, after + lead) if lead else None
    return min(
        (moment for moment in (falls, None if rises is None else rises - lead) if moment is not None), default=None
    )


_LOOK_BACK = 400
"""Days."""


@dataclass(frozen=True, slots=True)
class Overlaps:
    """collisions: each pair of behaviors that are active at once, the first time it happens.

    hidden: behaviors that are active but never count, each with the behaviors that count instead.
    """

    collisions: tuple[Collision, ...]
    hidden: tuple[tuple[int, tuple[int, ...]], ...]


def overlaps(schedule: Schedule, start: datetime, end: datetime) -> Overlaps:
    """The overlaps in [start, end). Raises `Invalid` for an unknown time zone."""
    instants, active = activities(schedule, seconds_of(start), seconds_of(end))
    winners = winners_of(schedule, active)
    counting = set(winners.tolist())
    hidden = [
        (index, tuple(sorted(set(winners[active[index]].tolist()))))
        for index in range(len(schedule.behaviors))
        if index not in counting and active[index].any()
    ]
    return Overlaps(collisions_in(schedule, instants, active, start, end), tuple(hidden))


def began(schedule: Schedule, collision: Collision) -> datetime | None:
    """When a collision that exists at the beginning of its span began; None: more than 400 days earlier."""
    at = seconds_of(collision.start)
    instants, active = activities(schedule, at - _LOOK_BACK * DAY, at + 1)
    both = active[collision.winner] & active[collision.loser]
    apart = np.flatnonzero(~both)
    return instant_of(int(instants[apart[-1] + 1])) if len(apart) else None


def collisions_in(
    schedule: Schedule, instants: Seconds, active: Activity, start: datetime, end: datetime
) -> tuple[Collision, ...]:
    """Each pair that is active at once, by the first time it is. instants, active: the arrays of `activities`."""
    if len(active) < 2:  # noqa: PLR2004 - it takes two
        return ()
    weights = active.astype(np.float32)
    together = np.argwhere(np.triu(weights @ weights.T, 1))
    ranks = {behavior: rank for rank, behavior in enumerate(ranking(schedule))}
    collisions = []
    for pair in together.tolist():
        winner, loser = sorted(pair, key=lambda behavior: ranks[behavior])
        both = active[winner] & active[loser]
        first = int(both.argmax())
        over = int(both[first:].argmin())  # 0: it never ends here
        begins = start if first == 0 else instant_of(int(instants[first]))
        ends = instant_of(int(instants[first + over])) if over else end
        collisions.append(Collision(begins, ends, winner, loser))
    return tuple(sorted(collisions, key=lambda item: (item.start, item.winner, item.loser)))
