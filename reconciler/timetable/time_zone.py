"""Local times of a zone as instants: the zone's UTC offsets over a span of years, as arrays. And the days of a calendar.

A local time that does not exist becomes the next that does; one that occurs twice becomes its first occurrence.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from reconciler.zone_data import time_zone

Seconds = NDArray[np.int64]
"""Seconds since 1970, of instants (UTC) or of local clocks read as if they were UTC."""

DAY = 86_400
FIRST_YEAR, LAST_YEAR = 2, 9998
"""Beyond them a local time may not fit into a `datetime`."""
_EVER = -(2**62)
_EPOCH_WEEKDAY = 4
"""1 January 1970 was a Thursday."""
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
Numbers = tuple[int, ...] | frozenset[int]


@dataclass(frozen=True, slots=True)
class ZoneOffsets:
    """A zone's offsets over some years, with N changes."""

    turns: Seconds
    """The local time of each change, by the clock before it (N)."""
    offsets: Seconds
    """Seconds east of UTC before the first change, and from each on (N + 1)."""
    begins: Seconds
    """The instant from which each offset holds (N + 1)."""

    def to_utc(self, local: Seconds) -> Seconds:
        """The instant of each local time. Ascending local times give ascending instants, equal ones inside a gap."""
        index = self.turns.searchsorted(local, side="right")
        # Inside a gap the new offset gives an instant before the change; the next local time is the change itself.
        instants: Seconds = np.maximum(local - self.offsets[index], self.begins[index])
        return instants


@lru_cache(maxsize=2048)
def zone_offsets(name: str, first_year: int, last_year: int) -> ZoneOffsets:
    """The zone's offsets from `first_year` to `last_year`, inclusive. Raises `Invalid` for an unknown zone."""
    zone = time_zone(name)
    changes = [change for year in range(first_year, last_year + 1) for change in _changes(name, year)]
    first = _offset(zone, _begin(first_year))
    offsets = [first, *(after for _, _, after in changes)]
    turns = np.array([instant + before for instant, before, _ in changes], dtype=np.int64)
    return ZoneOffsets(
        turns=np.maximum.accumulate(turns) if len(turns) else turns,
        offsets=np.array(offsets, dtype=np.int64),
        begins=np.array([_EVER, *(instant for instant, _, _ in changes)], dtype=np.int64),
    )


def year_of(instant: int) -> int:
    """The UTC year of an instant, clamped to FIRST_YEAR and LAST_YEAR."""
    if instant < _begin(FIRST_YEAR):
        return FIRST_YEAR
    if instant >= _begin(LAST_YEAR):
        return LAST_YEAR
    return datetime.fromtimestamp(instant, UTC).year


@lru_cache(maxsize=8192)
def _changes(name: str, year: int) -> tuple[tuple[int, int, int], ...]:
    """Each change of offset in one UTC year: instant, offset before, offset after.

    zoneinfo does not list them. They are found by comparing the beginnings of days and bisecting the days that differ; no
    zone has two changes within a day.
    """
    zone = time_zone(name)
    changes = []
    end = _begin(year + 1)
    at = _begin(year)
    before = _offset(zone, at)
    while at < end:
        later = min(at + DAY, end)
        after = _offset(zone, later)
        if after != before:
            low, high = at, later
            while high - low > 1:
                middle = (low + high) // 2
                if _offset(zone, middle) == before:
                    low = middle
                else:
                    high = middle
            changes.append((high, before, after))
            before = after
        at = later
    return tuple(changes)


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None
    return offset.days * DAY + offset.seconds


@lru_cache(maxsize=4096)
def _begin(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@lru_cache(maxsize=1024)
def dates_of(days: Numbers | None, months: Numbers | None) -> frozenset[tuple[int, int]]:
    """The dates, as month and day, that occur in some year. None: any. Every date falls on every weekday in some year."""
    every_day = range(1, 32) if days is None else days
    every_month = range(1, 13) if months is None else months
    return frozenset((month, day) for month in every_month for day in every_day if day <= _LENGTHS[month - 1])


def days_within(
    days: Numbers | None,
    months: Numbers | None,
    weekdays: Numbers | None,
    first: int,
    last: int,
    *,
    either: bool = False,
) -> Seconds:
    """The matching days from first to last, both included, as days since 1970. None: any. 0 is Sunday. either: the day of the month or the
    weekday is enough."""
    matching = _days_of(days, months, weekdays, year_of(first * DAY), year_of(last * DAY), either=either)
    return matching[matching.searchsorted(first) : matching.searchsorted(last, side="right")]


@lru_cache(maxsize=2048)
def _days_of(
    days: Numbers | None,
    months: Numbers | None,
    weekdays: Numbers | None,
    first_year: int,
    last_year: int,
    *,
    either: bool,
) -> Seconds:
    calendar, of_year, of_month, of_week = _calendar(first_year, last_year)
    by_day, by_weekday = _among(of_month, days), _among(of_week, weekdays)
    found: Seconds = calendar[_among(of_year, months) & (by_day | by_weekday if either else by_day & by_weekday)]
    return found


def _among(values: Seconds, numbers: Collection[int] | None) -> NDArray[np.bool_]:
    return np.ones(len(values), bool) if numbers is None else np.isin(values, list(numbers))


@lru_cache(maxsize=64)
def _calendar(first_year: int, last_year: int) -> tuple[Seconds, Seconds, Seconds, Seconds]:
    """Every day of the years: days since 1970, month, day of the month, weekday."""
    dates = np.arange(f"{first_year:04d}-01-01", f"{last_year + 1:04d}-01-01", dtype="datetime64[D]")
    months = dates.astype("datetime64[M]")
    days = dates.astype(np.int64)
    of_month = (dates - months).astype(np.int64) + 1
    return days, months.astype(np.int64) % 12 + 1, of_month, (days + _EPOCH_WEEKDAY) % 7
