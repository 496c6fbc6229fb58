"""Gauges of schedules, exact at the scrape, and of provisioning requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, ScheduleOutcome, TimePattern
from reconciler.ports import PassResult
from reconciler.telemetry.gauges import PassGauges, ScheduledCapacity
from reconciler.timetable.capacity_schedule import state_at
from tests.fakes.clock import ManualClock
from tests.fakes.requests import ATOMIC, CHECK, BatchShop, request

TEN, ELEVEN = TimePattern(hours=(10,)), TimePattern(hours=(11,))
RUSH = Schedule(
    ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "rush"), 1, (Behavior(7, TEN, ELEVEN),)
)


class Scraped:
    def __init__(self, *schedules: Schedule) -> None:
        self.clock = ManualClock()
        self.schedules = schedules
        self._registry = CollectorRegistry()
        self._registry.register(ScheduledCapacity(lambda: self.schedules, self.clock))

    def lines(self) -> list[str]:
        text = generate_latest(self._registry).decode()
        return [line for line in text.splitlines() if not line.startswith("#")]


def test_its_name_and_labels_are_those_of_the_proposal() -> None:
    assert Scraped(RUSH).lines() == ['karpenter_scheduled_capacity{name="rush",namespace="shop"} 1.0']


def test_it_changes_at_the_edge_and_not_with_the_next_pass() -> None:
    scraped = Scraped(RUSH)
    values = []
    for step in (0, 3599, 1, 3599, 1, -1):  # the last is a clock that is set back
        scraped.clock.advance(timedelta(seconds=step))
        values.append(scraped.lines()[0].rpartition(" ")[2])
    assert values == ["1.0", "1.0", "7.0", "7.0", "1.0", "7.0"]


def test_a_schedule_that_is_gone_or_another_one_is_no_longer_told() -> None:
    scraped = Scraped(RUSH)
    assert scraped.lines()
    scraped.schedules = ()
    assert scraped.lines() == []


def test_a_schedule_that_headroom_fails_on_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(schedule: Schedule, now: datetime) -> ScheduleOutcome:
        if schedule.ref.name == "bad":
            raise ValueError("a planted fault")
        return state_at(schedule, now)

    monkeypatch.setattr("reconciler.telemetry.gauges.state_at", broken)
    bad = replace(RUSH, ref=RUSH.ref._replace(name="bad"))
    assert Scraped(RUSH, bad).lines() == ['karpenter_scheduled_capacity{name="rush",namespace="shop"} 1.0']


# Provisioning requests as gauges: what is waited for is counted, and a check that says no raises no alert.

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def gauges(shop: BatchShop) -> CollectorRegistry:
    collector, registry = PassGauges(), CollectorRegistry()
    collector.take(PassResult(plan=shop.plan(), settled=True), succeeded=True, now=NOW)
    registry.register(collector)
    return registry


def states(registry: CollectorRegistry) -> dict[str, float]:
    names = ("waiting", "booked", "not_ready", "left", "failed", "capacity_revoked", "booking_expired")
    found = {name: registry.get_sample_value("headroom_requests", {"state": name}) for name in names}
    assert None not in found.values()
    return {name: value for name, value in found.items() if value}


def test_requests_are_counted_by_how_far_they_are() -> None:
    shop = BatchShop()
    assert states(gauges(shop)) == {}
    shop.settle(
        request("made", count=4, class_name=ATOMIC),
        request("unmade", template="missing"),
        request("refused", count=40, parameters={"noRetry": "true"}),
    )
    shop.cluster.apply(request("too-large", count=40))
    shop.cluster.apply(request("of-another", parameters={"processorInstance": "blue"}))
    registry = gauges(shop)
    assert states(registry) == {"booked": 1, "not_ready": 1, "failed": 1, "waiting": 1, "left": 1}
    assert registry.get_sample_value("headroom_booked_pods") == 4


def test_a_check_that_says_no_lacks_nothing() -> None:
    shop = BatchShop()
    plan = shop.settle(request("too-large", count=40, class_name=CHECK))
    assert sum(outcome.unplaced for outcome in plan.demands) == 40
    labels = {"kind": "ProvisioningRequest", "namespace": "shop", "name": "too-large"}
    registry = gauges(shop)
    assert registry.get_sample_value("headroom_plan_unplaced_chunks", labels) is None
    assert registry.get_sample_value("headroom_demand_ready", labels) == 1


@pytest.mark.parametrize(
    "parameters", [{"noRetry": "true"}, {"processorInstance": "blue"}], ids=["ended", "of another"]
)
def test_a_request_that_has_ended_or_is_left_to_another_is_neither_ready_nor_unready(
    parameters: dict[str, str],
) -> None:
    shop = BatchShop().given(request("refused", count=40, parameters=parameters))
    labels = {"kind": "ProvisioningRequest", "namespace": "shop", "name": "refused"}
    assert gauges(shop).get_sample_value("headroom_demand_ready", labels) is None
