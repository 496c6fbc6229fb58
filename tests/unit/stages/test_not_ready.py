"""Chunks wait a moment for a node that is not ready; only then is other room made for them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.fakes.embedded import SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster


def warm_shop(not_ready_grace: timedelta = timedelta(minutes=1)) -> KeptCluster:
    """Two chunks, each on a node of its own, in a pool whose nodes nobody takes away."""
    shop = KeptCluster(instance_types=(SMALL,), not_ready_grace=not_ready_grace)
    shop.want(2, node_pool(disruption={"consolidateAfter": "30s", "budgets": [{"nodes": "0"}]}))
    shop.passes.clear()
    return shop


def claims(shop: KeptCluster) -> int:
    return len(shop.cluster.view().node_claims)


def conditions(shop: KeptCluster) -> dict[str, str]:
    (outcome,) = shop.passes[-1].plan.demands
    return {item.type: f"{item.status}: {item.message}" for item in outcome.conditions}


def test_a_node_that_is_back_within_the_grace_changes_nothing_but_the_status() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    shop.cluster.set_ready(name, ready=False)
    shop.keep(40)
    assert claims(shop) == 2
    assert conditions(shop)["Provisioning"] == "False: of 2 chunks, 1 on nodes that are not ready"
    shop.cluster.set_ready(name, ready=True)
    shop.keep(120)
    assert claims(shop) == 2
    assert shop.hold_changes() == {}
    assert len(shop.passes) == 2


@pytest.mark.parametrize("grace", [60, 20])
def test_other_room_is_made_when_the_grace_is_over(grace: int) -> None:
    shop = warm_shop(not_ready_grace=timedelta(seconds=grace))
    shop.cluster.set_ready(shop.node_names()[0], ready=False)
    shop.keep(grace - 1)
    assert claims(shop) == 2
    shop.keep(15)
    assert claims(shop) == 3
    assert conditions(shop)["Provisioning"].startswith("True")
    assert shop.keep(900) == []


def test_a_clock_that_was_set_back_lets_nothing_flap() -> None:
    shop = warm_shop()
    shop.cluster.set_ready(shop.node_names()[0], ready=False)
    shop.keep(80)
    changes = shop.hold_changes()
    shop.clock.advance(-3600)
    shop.restart()
    shop.keep(300)
    assert claims(shop) == 3
    assert shop.hold_changes() == changes


def test_no_new_chunk_comes_to_a_node_that_is_waited_for() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    shop.cluster.set_ready(name, ready=False)
    shop.cluster.apply(workload("small", replicas=0, cpu="100m"))
    target = {"apiGroup": "apps", "kind": "Deployment", "name": "small"}
    shop.cluster.apply(buffer("small", scalableRef=target, replicas=6))
    shop.keep(20)
    held = {place.node: place.holdings for place in shop.passes[-1].plan.occupied}
    assert [holding.demand.name for holding in held[name]] == ["web"]
