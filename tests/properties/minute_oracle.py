"""What a schedule is worth, worked out minute by minute from what the rule says; shares nothing with the engine.

Walks through every minute of a span with a clock on the wall. A local time is due in the first minute in which the clock
shows it or, when the clock is set over it, a later time; what the clock shows again is not due again. Of the local times
that are due in one minute, the last on the wall decides, and a start before an end at the same local time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.zone_data import time_zone

MINUTE = timedelta(minutes=1)
HOUR = 60
DAY = 24 * HOUR
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Wall:
    """The clock of one zone. first: the span's first minute (minutes since 1970, UTC); latest: the latest local time that
    the clock has shown by each minute, in minutes since the first of the days; days: every local date concerned."""

    first: int
    latest: NDArray[np.int32]
    days: tuple[date, ...]

    def last(self, pattern: TimePattern) -> NDArray[np.int32]:
        """By each minute of the span, the last matching local time that was due, -1 for none."""
        on_day = np.array([_is_day(pattern, day) for day in self.days])
        of_day = np.array([_is_time(pattern, minute) for minute in range(DAY)])
        matching = np.flatnonzero(on_day[:, None] & of_day[None, :]).astype(np.int32)
        due = np.searchsorted(self.latest, matching)  # by match, the first minute in which it is
        lengths = np.diff(due, prepend=0, append=len(self.latest))
        return np.repeat(np.append(np.int32(-1), matching), lengths)


def _is_day(pattern: TimePattern, day: date) -> bool:
    return (
        (pattern.days is None or day.day in pattern.days)
        and (pattern.months is None or day.month in pattern.months)
        and (pattern.weekdays is None or day.isoweekday() % 7 in pattern.weekdays)
    )


def _is_time(pattern: TimePattern, minute: int) -> bool:
    return minute // HOUR in (pattern.hours or (0,)) and minute % HOUR in (pattern.minutes or (0,))


@cache
def wall(zone: str, first_year: int, years: int) -> Wall:
    begin = datetime(first_year, 1, 1, tzinfo=UTC)
    end = datetime(first_year + years, 1, 1, tzinfo=UTC)
    first, last = (begin - EPOCH) // MINUTE, (end - EPOCH) // MINUTE
    info = time_zone(zone)
    hours = [_ahead(info, hour) for hour in range(first, last + HOUR, HOUR)]
    ahead = np.repeat(np.array(hours[:-1], dtype=np.int64), HOUR)
    for place, (at_once, after) in enumerate(pairwise(hours)):
        if at_once != after:
            begins = place * HOUR
            ahead[begins : begins + HOUR] = [_ahead(info, first + begins + minute) for minute in range(HOUR)]
    shown = np.arange(first, last) + ahead
    first_day = int(shown[0]) // DAY - 1
    day_count = int(shown.max()) // DAY + 2 - first_day
    days = tuple(date(1970, 1, 1) + timedelta(days=first_day + index) for index in range(day_count))
    latest = np.maximum.accumulate(shown) - first_day * DAY
    return Wall(first, latest.astype(np.int32), days)


def _ahead(zone: ZoneInfo, minute: int) -> int:
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert offset is not None
    return offset // MINUTE


def values(schedule: Schedule, clock: Wall) -> tuple[NDArray[np.int64], int]:
    """The value in every minute of the span, and the first minute from which every behavior's state is known."""
    ranked = sorted(enumerate(schedule.behaviors), key=lambda item: (item[1].priority, -item[0]))
    result = np.full(len(clock.latest), schedule.default_replicas)
    known = 0
    for _, behavior in ranked:  # the one that counts over all others comes last
        active, known_from = _active(behavior, clock)
        result[active] = behavior.replicas
        known = max(known, known_from)
    return result, known


def _active(behavior: Behavior, clock: Wall) -> tuple[NDArray[np.bool_], int]:
    """Active while the last start is not before the last end; known from the first minute in which either is due."""
    starts, ends = clock.last(behavior.start), clock.last(behavior.end)
    due = (starts > starts[0]) | (ends > ends[0])
    if not due.any():
        return np.zeros(len(starts), dtype=bool), len(starts)
    return (starts >= ends) & (starts >= 0), int(due.argmax())


def moments(clock: Wall, minutes: Sequence[int]) -> list[datetime]:
    return [EPOCH + (clock.first + minute) * MINUTE for minute in minutes]
