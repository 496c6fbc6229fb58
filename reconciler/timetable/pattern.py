"""When a schedule's start or end matches, by calendar arithmetic: days first, then times of day, then instants.

A pattern matches where all its fields do, days and weekdays too (Karpenter design "Scheduled Capacity"). Absent minutes and
hours are 0, other absent fields match all. Nothing steps through minutes, so the cost follows the number of matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reconciler.model.schedules import TimePattern
from reconciler.timetable.time_zone import DAY, Seconds, year_of, zone_offsets

LONGEST_GAP = 15_000
"""Days. The longest time between two matches is that of 29 February on one weekday: up to 40 years."""

_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MARGIN = 2
"""Days by which local dates may differ from UTC's (Samoa once skipped a whole day)."""
_EPOCH_WEEKDAY = 4
"""1 January 1970 was a Thursday."""


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
    first_year, last_year = year_of(first * DAY), year_of(last * DAY)
    days = _days(pattern.days, pattern.months, pattern.weekdays, first_year, last_year)
    days = days[days.searchsorted(first) : days.searchsorted(last, side="right")]
    local = (days[:, None] * DAY + _times(pattern.hours, pattern.minutes)[None, :]).ravel()
    instants = zone_offsets(zone, first_year, last_year).to_utc(local)
    within = slice(int(instants.searchsorted(start)), int(instants.searchsorted(end)))
    instants, local = instants[within], local[within]
    again = instants[1:] == instants[:-1]  # several local times of one gap are one instant
    if again.any():
        latest = np.append(~again, True)
        instants, local = instants[latest], local[latest]
    return Matches(instants, local)


def can_match(pattern: TimePattern) -> bool:
    """Whether any date matches; 30 February does not exist. Every date falls on every weekday in some year."""
    return bool(_dates(pattern.days, pattern.months))


def is_within(pattern: TimePattern, other: TimePattern) -> bool:
    """Whether `other` matches whenever the pattern does."""
    return (
        set(pattern.hours or (0,)) <= set(other.hours or (0,))
        and set(pattern.minutes or (0,)) <= set(other.minutes or (0,))
        and (other.weekdays is None or set(pattern.weekdays or range(7)) <= set(other.weekdays))
        and _dates(pattern.days, pattern.months) <= _dates(other.days, other.months)
    )


def matches_a_day(pattern: TimePattern) -> int:
    """How often it can match on one day, which bounds the cost of evaluating it."""
    return len(pattern.hours or (0,)) * len(pattern.minutes or (0,))


@lru_cache(maxsize=1024)
def _dates(days: tuple[int, ...] | None, months: tuple[int, ...] | None) -> frozenset[tuple[int, int]]:
    return frozenset(
        (month, day) for month in months or range(1, 13) for day in days or range(1, 32) if day <= _LENGTHS[month - 1]
    )


@lru_cache(maxsize=1024)
def _times(hours: tuple[int, ...] | None, minutes: tuple[int, ...] | None) -> Seconds:
    """Seconds of the day."""
    times = {hour * 3600 + minute * 60 for hour in hours or (0,) for minute in minutes or (0,)}
    return np.array(sorted(times), dtype=np.int64)


@lru_cache(maxsize=2048)
def _days(
    days: tuple[int, ...] | None,
    months: tuple[int, ...] | None,
    weekdays: tuple[int, ...] | None,
    first_year: int,
    last_year: int,
) -> Seconds:
    """The matching dates of whole years, as days since 1970."""
    calendar, dates, calendar_weekdays = _calendar(first_year, last_year)
    matching = np.ones(len(calendar), dtype=bool)
    if days is not None:
        matching &= np.isin(dates % 32, days)
    if months is not None:
        matching &= np.isin(dates // 32, months)
    if weekdays is not None:
        matching &= np.isin(calendar_weekdays, weekdays)
    return calendar[matching]


@lru_cache(maxsize=64)
def _calendar(first_year: int, last_year: int) -> tuple[Seconds, NDArray[np.int64], NDArray[np.int64]]:
    """Every day of the years: days since 1970, 32 × month + day of the month, weekday (0: Sunday)."""
    dates = np.arange(f"{first_year:04d}-01-01", f"{last_year + 1:04d}-01-01", dtype="datetime64[D]")
    months = dates.astype("datetime64[M]")
    days = dates.astype(np.int64)
    of_month = (dates - months).astype(np.int64) + 1
    return days, (months.astype(np.int64) % 12 + 1) * 32 + of_month, (days + _EPOCH_WEEKDAY) % 7
