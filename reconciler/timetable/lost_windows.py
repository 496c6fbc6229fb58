"""Windows lost to a clock change: start and end are both in the hour that clocks skip.

A local time that does not exist becomes the next that does. So both become the same instant, and the window has no length.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.schedules import Behavior, TimePattern
from reconciler.timetable.activity import instant_of, is_active, seconds_of
from reconciler.timetable.pattern import matches
from reconciler.timetable.time_zone import year_of, zone_offsets

_HOUR = 3600


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
