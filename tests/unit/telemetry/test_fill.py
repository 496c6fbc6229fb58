"""What is remembered of how full buffers were: bounded, and never so that a shortage is averaged away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.changes import Cost, DemandOutcome, Plan
from reconciler.model.timelines import FillPoint, Refill
from reconciler.telemetry.buffers import COARSEST, FINEST, MOST_CHANGES, MOST_POINTS, MOST_REFILLS, FillHistory
from tests.builders import buffer_ref, demand

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
WEB = "CapacityBuffer/shop/web"


def plan(ready: int, wanted: int = 4, price: float = 1.0) -> Plan:
    outcome = DemandOutcome(demand("web", count=wanted), ready, 0, wanted - ready)
    return Plan(None, NOW, demands=(outcome,), cost=Cost(price, price))


def test_of_a_buffer_each_change_is_a_point_and_each_refill_has_its_seconds() -> None:
    history = FillHistory()
    for seconds, ready in enumerate((4, 4, 1, 1, 4)):
        ended = [(buffer_ref("web"), timedelta(seconds=2))] if seconds == 4 else []
        history.observe(plan(ready), ended, NOW + timedelta(seconds=seconds))
    past = history.of(WEB)
    assert [(point.since - NOW, point.ready) for point in past.points] == [
        (timedelta(0), 4),
        (timedelta(seconds=2), 1),
        (timedelta(seconds=4), 4),
    ]
    assert past.refills == (Refill(NOW + timedelta(seconds=4), 2.0),)


def test_a_short_shortage_stays_to_be_seen_and_a_buffer_that_only_grew_was_not_short() -> None:
    history = FillHistory()
    for seconds, (ready, wanted) in enumerate(((4, 4), (1, 4), (4, 4), (8, 8))):
        history.observe(plan(ready, wanted), (), NOW + timedelta(seconds=seconds))
    assert history.points() == (FillPoint(NOW, 4, 1, 1.0),)
    grown = FillHistory()
    grown.observe(plan(2, 2), (), NOW)
    grown.observe(plan(5, 5), (), NOW + timedelta(seconds=1))
    assert grown.points() == (FillPoint(NOW, 5, 5, 1.0),)


def test_a_buffer_that_is_no_longer_declared_is_forgotten() -> None:
    history = FillHistory()
    history.observe(plan(4), (), NOW)
    history.observe(Plan(None, NOW), (), NOW + timedelta(seconds=1))
    assert history.of(WEB).points == ()


def test_ten_days_of_passes_are_a_thousand_points() -> None:
    history = FillHistory()
    step = timedelta(minutes=2)
    for number in range(12 * 24 * 30):
        history.observe(plan(number % 5), [(buffer_ref("web"), step)], NOW + step * number)
    points = history.points()
    assert len(points) <= MOST_POINTS
    assert len(history.of(WEB).points) == MOST_CHANGES
    assert len(history.of(WEB).refills) == MOST_REFILLS
    assert timedelta(days=9) < points[-1].since - points[0].since
    assert all(point.ready == 0 for point in points[:-1]), "each stands for passes of which one was without any chunk"


@given(st.lists(st.tuples(st.integers(1, 4000), st.integers(0, 4)), min_size=1, max_size=300))
def test_points_go_forward_and_tell_the_worst_that_was_seen(passes: list[tuple[int, int]]) -> None:
    history, at = FillHistory(), NOW
    for seconds, ready in passes:
        at += timedelta(seconds=seconds)
        history.observe(plan(ready), (), at)
    points = history.points()
    gaps = [later.since - earlier.since for earlier, later in pairwise(points)]
    assert all(gap >= FINEST for gap in gaps)
    assert COARSEST > FINEST
    assert min(point.ready for point in points) == min(ready for _, ready in passes)
