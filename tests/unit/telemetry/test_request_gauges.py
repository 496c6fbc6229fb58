"""Provisioning requests as gauges: what is waited for is counted, and a check that says no raises no alert."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from reconciler.ports import PassResult
from reconciler.telemetry.gauges import PassGauges
from tests.fakes.requests import ATOMIC, CHECK, BatchShop, request

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
    shop.cluster.apply(request("made", count=4, class_name=ATOMIC))
    shop.cluster.apply(request("unmade", template="missing"))
    shop.cluster.apply(request("refused", count=40, parameters={"noRetry": "true"}))
    shop.settle()
    shop.cluster.apply(request("too-large", count=40))
    shop.cluster.apply(request("of-another", parameters={"processorInstance": "blue"}))
    registry = gauges(shop)
    assert states(registry) == {"booked": 1, "not_ready": 1, "failed": 1, "waiting": 1, "left": 1}
    assert registry.get_sample_value("headroom_booked_pods") == 4


def test_a_check_that_says_no_lacks_nothing() -> None:
    shop = BatchShop()
    shop.cluster.apply(request("too-large", count=40, class_name=CHECK))
    plan = shop.settle()
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
    shop = BatchShop()
    shop.cluster.apply(request("refused", count=40, parameters=parameters))
    shop.settle()
    labels = {"kind": "ProvisioningRequest", "namespace": "shop", "name": "refused"}
    assert gauges(shop).get_sample_value("headroom_demand_ready", labels) is None
