"""How full buffers are, by kind and name, and how long they are short."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import Cost, DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.timelines import FillPoint, Refill
from reconciler.ports import PassResult
from reconciler.telemetry.buffers import COARSEST, FINEST, MOST_CHANGES, MOST_POINTS, MOST_REFILLS, FillHistory
from reconciler.telemetry.metrics import Metrics
from tests.builders import buffer_ref, demand

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FULL = Condition("Provisioning", ConditionStatus.TRUE, "FitsExistingCapacity")
SHORT = Condition("Provisioning", ConditionStatus.FALSE, "RequiresNewCapacity")
WEB = {"kind": "CapacityBuffer", "namespace": "shop", "name": "web"}


def outcome(
    ready: int, *, coming: int = 0, new: int = 0, size: int = 4, since: datetime | None = None
) -> DemandOutcome:
    missing = size - ready - coming - new
    said = FULL if ready == size else SHORT
    return DemandOutcome(
        demand(count=size), ready + coming, new, missing, conditions=(said,), on_its_way=coming, short_since=since
    )


class Watched:
    def __init__(self) -> None:
        self.metrics = Metrics()

    def see(self, *outcomes: DemandOutcome, minutes: float = 0) -> None:
        now = NOON + timedelta(minutes=minutes)
        self.metrics.observe(PassResult(plan=Plan(None, now, demands=outcomes)), now=now)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, {**WEB, **labels})

    def filled(self) -> tuple[float | None, float | None]:
        """How many shortages have ended, and their seconds together."""
        found = [
            self.metrics.registry.get_sample_value(
                f"headroom_buffer_time_to_full_seconds_{part}", {"kind": "CapacityBuffer"}
            )
            for part in ("count", "sum")
        ]
        return found[0], found[1]


def test_chunks_are_counted_by_where_they_are() -> None:
    watched = Watched()
    watched.see(outcome(1, coming=1, new=1))
    places = [watched.value("headroom_buffer_chunks", place=place) for place in ("ready", "coming", "new", "none")]
    assert places == [1, 1, 1, 1]
    assert watched.value("headroom_buffer_fill_ratio") == 0.25


def test_two_kinds_of_one_name_are_two_series() -> None:
    other = outcome(4)
    older = replace(other, demand=replace(other.demand, ref=buffer_ref()._replace(kind="Buffer")))
    watched = Watched()
    watched.see(outcome(0), older)
    assert watched.value("headroom_buffer_fill_ratio") == 0
    assert watched.value("headroom_buffer_fill_ratio", kind="Buffer") == 1
    assert watched.value("karpenter_buffer_capacity_cpu_cores") == 0
    assert watched.value("karpenter_buffer_capacity_cpu_cores", kind="Buffer") == 4


def test_a_shortage_has_an_age_and_a_length() -> None:
    watched = Watched()
    watched.see(outcome(4))
    assert watched.value("headroom_buffer_shortage_age_seconds") == 0
    watched.see(outcome(1), minutes=1)
    watched.see(outcome(2, coming=2), minutes=4)
    assert watched.value("headroom_buffer_shortage_age_seconds") == 180
    assert watched.filled() == (0, 0)
    watched.see(outcome(4), minutes=6)
    assert watched.value("headroom_buffer_shortage_age_seconds") == 0
    assert watched.filled() == (1, 300)


def test_a_shortage_is_as_old_after_a_restart() -> None:
    watched = Watched()
    watched.see(outcome(1, since=NOON - timedelta(minutes=10)))
    assert watched.value("headroom_buffer_shortage_age_seconds") == 600


def test_a_buffer_that_asks_for_nothing_is_full_and_was_not_filled() -> None:
    watched = Watched()
    watched.see(outcome(1))
    watched.see(outcome(0, size=0), minutes=1)
    assert watched.value("headroom_buffer_fill_ratio") == 1
    assert watched.value("headroom_buffer_shortage_age_seconds") == 0
    assert watched.filled() == (0, 0)


def test_a_suspended_buffer_is_neither_short_nor_lacks_chunks() -> None:
    watched = Watched()
    stands = outcome(1, since=NOON - timedelta(minutes=10))
    watched.see(replace(stands, demand=replace(stands.demand, suspended=True)))
    assert watched.value("headroom_buffer_shortage_age_seconds") == 0
    assert watched.value("headroom_plan_unplaced_chunks") == 0
    assert watched.value("headroom_buffer_chunks", place="none") == 3
    assert watched.value("headroom_buffer_fill_ratio") == 0.25


def test_what_is_on_a_node_that_is_not_ready_does_not_fill_a_buffer() -> None:
    watched = Watched()
    stands = outcome(4)
    watched.see(replace(stands, not_ready=1, conditions=(SHORT,)))
    assert watched.value("headroom_buffer_fill_ratio") == 0.75
    places = [watched.value("headroom_buffer_chunks", place=place) for place in ("ready", "not_ready", "none")]
    assert places == [3, 1, 0]


def test_of_a_buffer_that_is_left_to_an_autoscaler_which_says_nothing_nobody_knows_how_full_it_is() -> None:
    watched = Watched()
    left = outcome(0)
    watched.see(replace(left, demand=replace(left.demand, fulfilment=Fulfilment.NATIVE), conditions=()))
    assert watched.value("headroom_buffer_fill_ratio") is None
    assert watched.value("headroom_buffer_shortage_age_seconds") == 0


def test_a_buffer_that_is_gone_is_gone_from_the_metrics() -> None:
    watched = Watched()
    watched.see(outcome(1))
    watched.see(minutes=1)
    assert watched.value("headroom_buffer_chunks", place="ready") is None


# What is remembered of how full buffers were: bounded, and never so that a shortage is averaged away.

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
BUFFER = "CapacityBuffer/shop/web"


def plan(ready: int, wanted: int = 4, price: float = 1.0) -> Plan:
    outcome = DemandOutcome(demand("web", count=wanted), ready, 0, wanted - ready)
    return Plan(None, NOW, demands=(outcome,), cost=Cost(price, price))


def test_of_a_buffer_each_change_is_a_point_and_each_refill_has_its_seconds() -> None:
    history = FillHistory()
    for seconds, ready in enumerate((4, 4, 1, 1, 4)):
        ended = [(buffer_ref("web"), timedelta(seconds=2))] if seconds == 4 else []
        history.observe(plan(ready), ended, NOW + timedelta(seconds=seconds))
    past = history.of(BUFFER)
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
    assert history.of(BUFFER).points == ()


def test_ten_days_of_passes_are_a_thousand_points() -> None:
    history = FillHistory()
    step = timedelta(minutes=2)
    for number in range(12 * 24 * 30):
        history.observe(plan(number % 5), [(buffer_ref("web"), step)], NOW + step * number)
    points = history.points()
    assert len(points) <= MOST_POINTS
    assert len(history.of(BUFFER).points) == MOST_CHANGES
    assert len(history.of(BUFFER).refills) == MOST_REFILLS
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
