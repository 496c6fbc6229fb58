"""Being ready in time: growth comes earlier by the lead, falls come when they come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.timetable.capacity_schedule import next_change, next_look, spans_with_lead, state_at, value_with_lead
from reconciler.timetable.windows import Edges, is_within, union

REF = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "office")
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)


def hours(*behaviors: tuple[int, int, int], default: int = 1) -> Schedule:
    """Daily behaviors: replicas, from hour, to hour."""
    return Schedule(
        REF,
        default,
        tuple(
            Behavior(replicas, TimePattern(hours=(start,)), TimePattern(hours=(end,)))
            for replicas, start, end in behaviors
        ),
    )


OFFICE = hours((3, 9, 17))


@pytest.mark.parametrize(
    ("time", "value"),
    [("08:49:59", 1), ("08:50:00", 3), ("09:00:00", 3), ("16:55:00", 3), ("16:59:59", 3), ("17:00:00", 1)],
)
def test_growth_comes_ten_minutes_early_and_the_fall_on_time(time: str, value: int) -> None:
    at = datetime.fromisoformat(f"2026-11-23T{time}+00:00")
    assert value_with_lead(OFFICE, TEN_MINUTES, at) == value


def test_a_dip_shorter_than_the_lead_is_no_dip() -> None:
    lunch = hours((3, 9, 12), (3, 13, 17))
    spans = spans_with_lead(lunch, timedelta(hours=1), MONDAY, MONDAY + timedelta(days=1))
    assert [(opens.hour, closes.hour, value) for opens, closes, value in spans] == [(0, 8, 1), (8, 17, 3), (17, 0, 1)]


def test_the_next_look_is_the_earlier_of_growing_and_falling() -> None:
    look = next_look(OFFICE, TEN_MINUTES, MONDAY)
    assert look == MONDAY + timedelta(hours=8, minutes=50)
    assert next_look(OFFICE, TEN_MINUTES, look) == MONDAY + timedelta(hours=9)
    assert next_look(hours(), TEN_MINUTES, MONDAY) is None


SCHEDULES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 23), st.integers(0, 23)), max_size=4).map(
    lambda behaviors: hours(*behaviors)
)
LEADS = st.integers(0, 600).map(lambda minutes: timedelta(minutes=minutes))
INSTANTS = st.integers(0, 3 * 24 * 3600).map(lambda seconds: MONDAY + timedelta(seconds=seconds))


@settings(deadline=None, max_examples=40)
@given(SCHEDULES, LEADS, INSTANTS)
def test_it_is_the_largest_value_of_the_lead_ahead_minute_by_minute(
    schedule: Schedule, lead: timedelta, at: datetime
) -> None:
    edges = {at, at + lead}
    moment = next_change(schedule, at)
    while moment is not None and moment <= at + lead:
        edges.add(moment)
        moment = next_change(schedule, moment)
    assert value_with_lead(schedule, lead, at) == max(state_at(schedule, edge).current_value for edge in edges)


@settings(deadline=None, max_examples=40)
@given(SCHEDULES, LEADS, INSTANTS)
def test_spans_say_at_every_instant_what_the_value_says(schedule: Schedule, lead: timedelta, at: datetime) -> None:
    start, end = MONDAY, MONDAY + timedelta(days=4)
    spans = spans_with_lead(schedule, lead, start, end)
    assert spans[0][0] == start
    assert spans[-1][1] == end
    assert all(before[1] == after[0] and before[2] != after[2] for before, after in pairwise(spans))
    (value,) = (value for opens, closes, value in spans if opens <= at < closes)
    assert value == value_with_lead(schedule, lead, at)


@settings(deadline=None, max_examples=40)
@given(SCHEDULES, LEADS, INSTANTS)
def test_nothing_changes_between_two_looks(schedule: Schedule, lead: timedelta, at: datetime) -> None:
    look = next_look(schedule, lead, at)
    last = at + timedelta(days=3) if look is None else look - timedelta(seconds=1)
    if last > at:
        assert len(spans_with_lead(schedule, lead, at, last)) == 1


# Arithmetic on spans, against the same done minute by minute.

MOST = 40
POINTS = st.lists(st.integers(0, MOST), unique=True, max_size=12).map(sorted)
SPANS = POINTS.map(lambda points: np.array(points[: len(points) // 2 * 2], np.int64))


def minutes(edges: Edges) -> set[int]:
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return {minute for begin, end in pairs for minute in range(begin, end)}


@given(spans=st.lists(SPANS, min_size=1, max_size=4))
def test_a_union_is_open_whenever_one_of_them_is(spans: list[Edges]) -> None:
    found = union(spans)
    assert minutes(found) == set().union(*map(minutes, spans))
    assert (np.diff(found) > 0).all()


@given(inner=SPANS, outer=SPANS)
def test_spans_are_within_others(inner: Edges, outer: Edges) -> None:
    assert is_within(inner, outer) == (minutes(inner) <= minutes(outer))
