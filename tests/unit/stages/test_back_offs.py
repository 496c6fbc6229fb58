"""Passes after a launch found no capacity: what ran out is not asked for again, and nobody else is kept from it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import PlannedNode
from reconciler.plan.launching.back_offs import FIRST_DELAY
from reconciler.settings.settings import PlacementSettings, Settings
from reconciler.stages.result import PassResult
from reconciler.wiring.cycle import make_cycle
from tests.builders import instance_type
from tests.fakes.embedded import Sandbox, apply, buffer, node_claim, node_pool, workload
from tests.fakes.source import FakeSource

SOON = timedelta(seconds=3)
ONLY = instance_type("m-4x", cpu="4", memory="16Gi")
"""In zone-a and zone-b, on demand."""


class Shop:
    """A buffer of one chunk in zone-a, where everything is out of stock; the first launch has just failed."""

    def __init__(self, *instance_types: InstanceType) -> None:
        self.sandbox = Sandbox(instance_types=instance_types)
        self.sandbox.cluster.set_stock("m-4x", "zone-a", "on-demand", available=False)
        self.sandbox.cluster.apply(node_pool())
        self.want_zone("zone-a")
        self.sandbox.cluster.apply(buffer(replicas=1))
        self.cycle = make_cycle(
            Settings(placement=PlacementSettings(check=True)),
            source=FakeSource(),
            cluster=self.sandbox.cluster,
            catalog=ClusterCatalog("embedded"),
            clock=self.sandbox.clock,
        )
        assert [node.zones for node in made_by(self.cycle.run("start"))] == [("zone-a",)]
        self.sandbox.wait(SOON.total_seconds())

    def want_zone(self, zone: str) -> None:
        self.sandbox.cluster.apply(workload(replicas=0, nodeSelector={"topology.kubernetes.io/zone": zone}))


def made_by(result: PassResult) -> list[PlannedNode]:
    assert result.failure is None, result.failure
    return [creation.planned for creation in result.required_plan.node_claims.create]


@pytest.fixture
def shop() -> Shop:
    return Shop(ONLY)


def test_what_ran_out_is_not_asked_for_until_the_back_off_ends(shop: Shop) -> None:
    plan = shop.cycle.run("vanished").required_plan

    assert plan.node_claims.create == ()
    (outcome,) = plan.demands
    assert "offering not available" in {reason.cause for reason in outcome.unplaced_reasons}
    shop.sandbox.wait(FIRST_DELAY.total_seconds())
    assert len(made_by(shop.cycle.run("again"))) == 1


def test_a_node_on_its_way_may_still_become_what_ran_out_for_us(shop: Shop) -> None:
    """Karpenter knows nothing of our back-offs and may launch it in zone-a: it is no place for what must be in zone-b."""
    shop.cycle.run("vanished")
    shop.want_zone("zone-b")
    shop.sandbox.write(apply(node_claim("other", "m-4x")))

    assert [node.zones for node in made_by(shop.cycle.run("other"))] == [("zone-b",)]
