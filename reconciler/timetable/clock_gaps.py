"""Ends that a clock set forward takes away: start and end of a window both fall into the hour that is skipped.

A local time that does not exist becomes the next that does. A start and an end in one gap so become one instant, at which the
start wins: a window of half an hour stays open until its next end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.schedules import Behavior, TimePattern
from reconciler.timetable.activity import instant_of, seconds_of
from reconciler.timetable.pattern import matches
from reconciler.timetable.zone import DAY, year_of, zone_offsets

_HOUR = 3600
_LOOK_AHEAD = 400
"""Days in which the next end is looked for."""


@dataclass(frozen=True, slots=True)
class LostEnd:
    """at: the instant at which the clock is set; gap: local time of the skipped hour, from and to; start, end: the local
    times that fall into it; until: when it ends instead, None: not within a year. Local times are naive."""

    at: datetime
    gap: tuple[datetime, datetime]
    start: datetime
    end: datetime
    until: datetime | None


def lost_end(behavior: Behavior, zone: str, start: datetime, end: datetime) -> LostEnd | None:
    """The first in [start, end), or None. Raises `Invalid` for a time zone that is not known."""
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
        starts, ends = (matches(pattern, "UTC", opens, closes + 1) for pattern in (behavior.start, behavior.end))
        if len(starts) and len(ends) and ends[-1] > starts[-1]:
            later = matches(behavior.end, zone, at + 1, at + _LOOK_AHEAD * DAY)
            return LostEnd(
                instant_of(at),
                (_local(opens), _local(closes)),
                _local(int(starts[-1])),
                _local(int(ends[-1])),
                instant_of(int(later[0])) if len(later) else None,
            )
    return None


def _is_near(pattern: TimePattern, opens: int, closes: int) -> bool:
    """Whether any hour of it is one of the gap's: what is cheap to tell, and mostly no."""
    return any((hour - opens // _HOUR) % 24 <= closes // _HOUR - opens // _HOUR for hour in pattern.hours or (0,))


def _local(seconds: int) -> datetime:
    return instant_of(seconds).replace(tzinfo=None)
