"""The schedule engine agrees with a walk through every minute of three years, in zones whose clocks do odd things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.timetable.capacity_schedule import next_change, state_at, timeline
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


ZONES = {
    "UTC": 2026,
    "Europe/Berlin": 2025,
    "America/New_York": 2026,
    "Australia/Lord_Howe": 2026,  # half an hour
    "America/Havana": 2025,  # at midnight
    "Africa/Cairo": 2023,  # at midnight, forward on a Friday; none before 2023
    "Asia/Beirut": 2022,  # at midnight
    "America/Asuncion": 2022,  # at midnight, and no more since 2024
    "Africa/Casablanca": 2025,  # back for Ramadan
    "Pacific/Apia": 2010,  # left out 30 December 2011
    "America/St_Johns": 2009,  # one minute past midnight
    "Asia/Kolkata": 2025,
}
YEARS = 3
REF = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "default", "generated")


def lists(values: st.SearchStrategy[int], most: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(values, min_size=1, max_size=most, unique=True).map(lambda items: tuple(sorted(items)))


hours = st.one_of(st.sampled_from([0, 1, 2, 3, 23]), st.integers(0, 23))
minutes = st.one_of(st.sampled_from([0, 1, 15, 30, 59]), st.integers(0, 59))
patterns = st.builds(
    TimePattern,
    minutes=st.none() | lists(minutes),
    hours=st.none() | lists(hours),
    days=st.none() | st.none() | lists(st.integers(1, 31), 8),
    months=st.none() | st.none() | lists(st.integers(1, 12), 8),
    weekdays=st.none() | lists(st.integers(0, 6), 6),
)
behaviors = st.builds(
    Behavior, replicas=st.integers(0, 5), start=patterns, end=patterns, priority=st.sampled_from([0, 0, 0, 1, -1])
)
spread = st.lists(st.floats(0, 1, exclude_max=True), min_size=4, max_size=4)


def values_over(schedule: Schedule, start: datetime, end: datetime) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The beginning of each span in seconds since 1970, and its value."""
    spans = timeline(schedule, start, end, start).spans
    begins = np.array([span.start.timestamp() for span in spans], dtype=np.int64)
    return begins, np.array([span.value for span in spans], dtype=np.int64)


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=st.lists(behaviors, min_size=1, max_size=3), places=spread)
def test_every_minute_of_three_years(zone: str, found: list[Behavior], places: list[float]) -> None:
    schedule = Schedule(REF, 2, tuple(found), zone)
    clock = wall(zone, ZONES[zone] - 1, YEARS + 1)
    expected, known = values(schedule, clock)
    begin = max(known, 365 * 24 * HOUR)  # a year to find out what is active
    if begin >= len(expected) - 1:
        return
    start, end = moments(clock, (begin, len(expected)))
    instants, worth = values_over(schedule, start, end)
    assert (instants % 60 == 0).all()
    lengths = np.diff(np.append(instants // 60 - clock.first, len(expected)))
    got = np.repeat(worth, lengths)
    wrong = np.flatnonzero(got != expected[begin:])
    assert not len(wrong), f"at {moments(clock, [begin + int(wrong[0])])[0]}: {got[wrong[0]]}"

    for place in places:
        minute = begin + int(place * (len(expected) - begin))
        now = moments(clock, [minute])[0] + timedelta(seconds=30)
        other = np.flatnonzero(expected[minute:] != expected[minute])
        outcome = state_at(schedule, now)
        assert outcome.current_value == expected[minute]
        assert next_change(schedule, now) == outcome.next_value_time
        if len(other):
            at = minute + int(other[0])
            assert outcome.next_value_time == moments(clock, [at])[0]
            assert outcome.next_value == expected[at]
        elif outcome.next_value_time is not None:
            assert outcome.next_value_time >= end


@pytest.mark.parametrize("zone", ZONES)
def test_each_half_of_the_hours_in_which_clocks_are_set(zone: str) -> None:
    """A behavior for each half of an hour from 0:00 to 4:00 and before midnight; a quarter of nothing after each."""
    halves = [(hour, minute) for hour in (0, 1, 2, 3, 23) for minute in (0, 30)]
    found = [
        Behavior(
            replicas=index,
            start=TimePattern(hours=(hour,), minutes=(minute,)),
            end=TimePattern(hours=(hour,), minutes=(minute + 15,)),
        )
        for index, (hour, minute) in enumerate(halves)
    ]
    schedule = Schedule(REF, 99, tuple(found), zone)
    clock = wall(zone, ZONES[zone] - 1, YEARS + 1)
    expected, known = values(schedule, clock)
    start, end = moments(clock, (known, len(expected)))
    instants, worth = values_over(schedule, start, end)
    lengths = np.diff(np.append(instants // 60 - clock.first, len(expected)))
    wrong = np.flatnonzero(np.repeat(worth, lengths) != expected[known:])
    assert not len(wrong), f"from {moments(clock, [known + int(wrong[0])])[0]}"


@settings(max_examples=40, deadline=None)
@given(
    found=st.lists(behaviors, max_size=3),
    zone=st.sampled_from(sorted(ZONES)),
    days=st.integers(0, 1000),
    seconds=st.integers(1, 40 * 86_400),
)
def test_a_timeline_is_its_parts_put_together(found: list[Behavior], zone: str, days: int, seconds: int) -> None:
    """Spans fill the timeline, neighbours differ, and a timeline cut in two is the same timeline."""
    schedule = Schedule(REF, 2, tuple(found), zone)
    start = moments(wall("UTC", 2026, 1), [0])[0] + timedelta(days=days, seconds=17)
    middle, end = start + timedelta(seconds=seconds // 2), start + timedelta(seconds=seconds)
    whole = timeline(schedule, start, end, start)
    edges = [span.start for span in whole.spans] + [end]
    assert edges[0] == start
    assert [span.end for span in whole.spans] == edges[1:]
    assert all(one.behavior != other.behavior for one, other in zip(whole.spans, whole.spans[1:], strict=False))
    assert whole.outcome == state_at(schedule, start)
    assert whole.spans[0].value == whole.outcome.current_value
    if not start < middle < end:
        return
    parts = [*timeline(schedule, start, middle, start).spans, *timeline(schedule, middle, end, start).spans]

    def at(spans: object, moment: object) -> object:
        return next((span.value, span.behavior) for span in spans if span.start <= moment < span.end)  # type: ignore[attr-defined]

    for moment in {span.start for span in (*parts, *whole.spans)} | {middle - MINUTE / 60, end - MINUTE / 60}:
        assert at(parts, moment) == at(whole.spans, moment)
