"""Behaviors of a schedule that do not count as written: active at once with others, or never."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from reconciler.model.schedules import Schedule
from reconciler.model.timelines import Collision
from reconciler.timetable.activity import (
    Activity,
    activities,
    instant_of,
    ranking,
    seconds_of,
    winners_of,
)
from reconciler.timetable.time_zone import DAY, Seconds

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
