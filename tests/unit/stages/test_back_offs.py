"""Passes after a launch found no capacity: what ran out is not asked for again, and nobody else is kept from it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import PlannedNode
from reconciler.plan.launching.back_offs import BackOffRules
from reconciler.settings.settings import PlacementSettings, Settings
from reconciler.stages.state import PassResult
from reconciler.wiring.cycle import make_cycle
from tests.builders import instance_type
from tests.fakes.embedded import SMALL, Sandbox, apply, buffer, node_claim, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster, Pass
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
    shop.sandbox.wait(BackOffRules().first.total_seconds())
    assert len(made_by(shop.cycle.run("again"))) == 1


def test_a_node_on_its_way_may_still_become_what_ran_out_for_us(shop: Shop) -> None:
    """Karpenter knows nothing of our back-offs and may launch it in zone-a: it is no place for what must be in zone-b."""
    shop.cycle.run("vanished")
    shop.want_zone("zone-b")
    shop.sandbox.write(apply(node_claim("other", "m-4x")))

    assert [node.zones for node in made_by(shop.cycle.run("other"))] == [("zone-b",)]


@pytest.mark.parametrize("minutes", [10, 30, 180])
def test_after_an_outage_the_whole_buffer_is_back_ten_minutes_after_its_stock_at_the_latest(minutes: int) -> None:
    kept = KeptCluster(instance_types=(SMALL,))
    kept.cluster.apply(node_pool())
    kept.cluster.apply(workload(replicas=0, cpu="1500m"))
    kept.cluster.apply(buffer(replicas=6))
    sell(kept, available=False)
    first = creations_of(kept.keep(5))
    tried = creations_of(kept.keep(minutes * 60, step=5))
    sell(kept, available=True)
    filled = creations_of(kept.keep(11 * 60, step=5))

    assert len(first) == 6
    assert 1 <= len(tried) <= 2 + minutes // 10  # one NodeClaim at a time, at most every ten minutes in the end
    assert len(filled) == 6
    assert kept.short() == 0


def test_a_node_that_anybody_gets_of_what_was_sold_out_ends_the_wait() -> None:
    kept = KeptCluster(instance_types=(SMALL,))
    kept.cluster.apply(node_pool())
    kept.cluster.apply(workload(replicas=0, cpu="1500m"))
    kept.cluster.apply(buffer(replicas=2))
    sell(kept, available=False)
    kept.keep(180 + 30, step=5)  # long enough to have failed twice: the third attempt would be six minutes later
    sell(kept, available=True)
    assert creations_of(kept.keep(60)) == []
    kept.write(apply(node_claim("other", "m-2x", zones=["zone-a"])))
    assert len(creations_of(kept.keep(15))) == 1  # the other chunk is on the node that came


def sell(kept: KeptCluster, *, available: bool) -> None:
    for zone in ("zone-a", "zone-b"):
        kept.cluster.set_stock("m-2x", zone, "on-demand", available=available)


def creations_of(passes: list[Pass]) -> list[str]:
    return [creation.name for made in passes for creation in made.plan.node_claims.create]
