"""Chunks leave a placeholder for room that became free elsewhere, in Karpenter's own time and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import instance_type
from tests.fakes.embedded import (
    LARGE,
    SMALL,
    Document,
    buffer,
    in_node_pool,
    node_pool,
    node_ref,
    workload,
    workload_ref,
)
from tests.fakes.kept_cluster import KeptCluster


def scaled_down(consolidate_after: str = "60s", budget: str = "100%", **more: Any) -> KeptCluster:
    """Three pods on a node that they fill, and two placeholders of a chunk each; then only one pod is left."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    shop.cluster.apply(
        node_pool(disruption={"consolidateAfter": consolidate_after, "budgets": [{"nodes": budget}]}, **more)
    )
    shop.add_node("web", "m-8x", cpu="7")
    shop.cluster.apply(workload("busy", replicas=3, cpu="2500m"))
    shop.cluster.apply(workload(replicas=0, cpu="1800m"))
    shop.cluster.apply(buffer(replicas=2))
    shop.keep(30)
    assert len(shop.node_names()) == 3, shop.node_names()
    shop.passes.clear()
    shop.cluster.scale(workload_ref("busy"), 1)
    return shop


def test_a_placeholder_is_left_once_room_elsewhere_has_been_free_for_consolidate_after() -> None:
    shop = scaled_down()
    shop.keep(50)
    assert len(shop.node_names()) == 3
    assert shop.passes == []
    shop.keep(60)
    assert shop.node_names() == ["node-web"]
    assert shop.short() == 0
    assert max(shop.hold_changes().values()) == 1
    assert len(shop.passes) <= 3
    assert shop.keep(900) == []


def test_those_of_many_node_pools_are_left_without_a_tick_where_spot_is_sold_too() -> None:
    """By spot prices each node on demand would look too large to take chunks, and only a few nodes are judged in one pass."""
    types = [
        instance_type(f"m-{cpu}x", cpu=str(cpu), price=0.05 * cpu, capacity_types=("on-demand", "spot"))
        for cpu in (2, 4, 8, 16)
    ]
    shop = KeptCluster(instance_types=types, provisions_pending=True)
    names = [f"web-{number}" for number in range(4)]
    for name in names:
        shop.cluster.apply(node_pool(name, consolidate_after="15s"))
        shop.cluster.apply(workload(name, replicas=10, cpu="1500m", affinity=in_node_pool(name)))
        target = {"apiGroup": "apps", "kind": "Deployment", "name": name}
        shop.cluster.apply(buffer(name, replicas=3, scalableRef=target))
    shop.keep(60)
    assert len(shop.node_names()) == 12
    for name in names:
        shop.cluster.scale(workload_ref(name), 7)
    shop.keep(60)
    assert len(shop.node_names()) == 4
    assert shop.short() == 0


def test_no_chunk_comes_to_room_that_pods_of_a_node_which_goes_may_need() -> None:
    shop = scaled_down()
    shop.add_node("going", "m-2x")
    shop.cluster.apply(workload("slow", cpu="1800m", nodeSelector={"kubernetes.io/hostname": "node-going"}))

    def disrupt(node: Document) -> None:
        node["spec"].setdefault("taints", []).append({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"})

    shop.wait(1)
    shop.change(node_ref("node-going"), disrupt, "karpenter")
    assert shop.keep(240) == []
    shop.cluster.delete(workload_ref("slow"))
    shop.keep(120)
    assert "node-web" in shop.node_names()
    assert shop.short() == 0
    assert not any("headroom" in name for name in shop.node_names())


def test_it_stays_in_a_pool_that_never_consolidates() -> None:
    shop = scaled_down("Never")
    assert shop.keep(900) == []
    assert len(shop.node_names()) == 3


def test_it_stays_while_the_budget_for_empty_nodes_is_closed() -> None:
    shop = scaled_down(budget="0")
    assert shop.keep(900) == []
    assert len(shop.node_names()) == 3


@pytest.mark.parametrize("seconds", [20, 45])
def test_room_that_is_used_again_and_again_draws_no_chunk(seconds: int) -> None:
    shop = scaled_down()
    for replicas in (2, 1, 2, 1, 2, 1):
        shop.keep(seconds)
        shop.cluster.scale(workload_ref("busy"), replicas)
    shop.keep(seconds)
    assert len(shop.node_names()) == 3
    assert shop.hold_changes() == {}


def test_a_restart_in_the_middle_of_the_wait_changes_nothing() -> None:
    shop = scaled_down()
    shop.keep(40)
    shop.restart()
    shop.keep(70)
    assert shop.node_names() == ["node-web"]
