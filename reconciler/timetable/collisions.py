"""Behaviors of a schedule that do not count as written: active at once with others, never, or lost to a clock change.

A window is lost if its start and its end are both in the hour that clocks skip. A local time that does not exist becomes the next that does.
So both become the same instant, and the window has no length.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.model.timelines import Collision
from reconciler.timetable.activity import (
    Activity,
    activities,
    instant_of,
    is_active,
    matches,
    ranking,
    seconds_of,
    winners_of,
)
from reconciler.timetable.time_zone import DAY, Seconds, year_of, zone_offsets

_LOOK_BACK = 400
"""Days."""
_HOUR = 3600


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


@dataclass(frozen=True, slots=True)
class SkippedWindow:
    """A window that does not occur. All times are local and naive."""

    gap: tuple[datetime, datetime]
    """The local times between which clocks skip."""
    start: datetime
    end: datetime


def skipped_window(behavior: Behavior, zone: str, start: datetime, end: datetime) -> SkippedWindow | None:
    """The first window in [start, end) that clocks skip, or None. Raises `Invalid` for an unknown time zone."""
    first, last = seconds_of(start), seconds_of(end)
    offsets = zone_offsets(zone, year_of(first), year_of(last))
    leaps = offsets.offsets[1:] - offsets.offsets[:-1]
    for index in (leaps > 0).nonzero()[0].tolist():
        at, opens = int(offsets.begins[index + 1]), int(offsets.turns[index])
        closes = opens + int(leaps[index])
        if not first <= at < last or not (
            _is_near(behavior.start, opens, closes) and _is_near(behavior.end, opens, closes)
        ):
            continue
        # Local times, read as if they were UTC; one at the gap's end is the instant itself.
        starts, ends = (matches(pattern, "UTC", opens, closes + 1).local for pattern in (behavior.start, behavior.end))
        is_skipped = len(starts) and len(ends) and ends[-1] > starts[-1]
        if is_skipped and not is_active(behavior, zone, at - 1):
            return SkippedWindow((_local(opens), _local(closes)), _local(int(starts[-1])), _local(int(ends[-1])))
    return None


def _is_near(pattern: TimePattern, opens: int, closes: int) -> bool:
    """Whether any hour of the pattern is in the gap: a cheap check that is mostly False."""
    return any((hour - opens // _HOUR) % 24 <= closes // _HOUR - opens // _HOUR for hour in pattern.hours or (0,))


def _local(seconds: int) -> datetime:
    return instant_of(seconds).replace(tzinfo=None)
