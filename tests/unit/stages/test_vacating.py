"""Nodes that chunks leave in time: for free room elsewhere, for a newer node when theirs has drifted or expires."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.cluster.embedded.karpenter import Delays
from reconciler.model.refs import ObjectRef
from reconciler.report.explanation import explanation, explanation_document, explanation_text
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
    shop.keep(30, workload("busy", replicas=3, cpu="2500m"), workload(replicas=0, cpu="1800m"), buffer(replicas=2))
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
        shop.cluster.apply(buffer(name, of=name, replicas=3))
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


@pytest.mark.parametrize("within", [{"consolidate_after": "Never"}, {"budget": "0"}], ids=["never", "no budget"])
def test_it_stays_within_the_limits_of_its_node_pool(within: dict[str, str]) -> None:
    shop = scaled_down(**within)
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


# Held nodes that have drifted are replaced one budget step at a time, and then there is silence.

BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
BUDGET = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}


def warm_shop(replicas: int = 4) -> KeptCluster:
    """A buffer of chunks that fill a node each."""
    shop = KeptCluster(instance_types=(SMALL,))
    shop.want(replicas, node_pool(disruption=BUDGET))
    assert len(shop.cluster.view().nodes) == replicas
    return shop


def uids(shop: KeptCluster) -> set[str]:
    """A node that was replaced may have its name again."""
    return {item.uid for item in shop.cluster.view().nodes}


def says_full(shop: KeptCluster) -> bool:
    body = shop.cluster.get(BUFFER) or {}
    rows = {row["type"]: row["status"] for row in body["status"]["conditions"]}
    return bool(rows["Provisioning"] == "True")


def change_template(shop: KeptCluster) -> None:
    pool = node_pool(disruption=BUDGET)
    pool["spec"]["template"]["metadata"] = {"labels": {"team": "shop"}}
    shop.cluster.apply(pool)


def test_four_held_nodes_drift_and_each_is_replaced_before_it_goes() -> None:
    shop = warm_shop()
    old = uids(shop)
    change_template(shop)
    nodes = []
    for _ in range(150):
        shop.keep(1)
        nodes.append(len(shop.cluster.view().nodes))
        assert says_full(shop)
    assert old.isdisjoint(uids(shop))
    assert nodes[-1] == 4
    assert min(nodes) >= 4, "the buffer was short"
    assert max(nodes) <= 5, "more than one was replaced at a time"
    assert max(shop.hold_changes().values()) <= 1, shop.hold_changes()
    assert shop.keep(600) == []


# Held nodes that expire: their chunks have room elsewhere before Karpenter takes them.

WANTED = 3


@pytest.mark.parametrize("register", [3, 50])
def test_a_buffer_on_nodes_of_a_short_life_is_never_short(register: int) -> None:
    kept = KeptCluster(instance_types=(SMALL,), delays=Delays(timedelta(seconds=2), timedelta(seconds=register)))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    kept.want(WANTED, pool, within=register + 30)

    short = 0
    for _ in range(35 * 60 // 5):
        kept.keep(5, step=5)
        short += standing(kept) < WANTED
    assert short == 0


def standing(kept: KeptCluster) -> int:
    """Nodes that are ready and not being deleted: one holds one chunk."""
    view = kept.cluster.view()
    return sum(
        machine.node is not None and machine.node.ready and not (machine.node_claim and machine.node_claim.deleting)
        for machine in view.machines
    )


def test_explain_says_why_a_node_that_expires_soon_is_not_used() -> None:
    kept = KeptCluster(instance_types=(SMALL,))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    kept.keep(8 * 60, pool, workload(replicas=0, cpu="1500m"), buffer(replicas=1), step=5)
    (plan,) = [item.plan for item in kept.passes if item.plan.unused and item.plan.node_claims.create]
    (name,) = plan.unused
    text = explanation_text(explanation(plan, "CapacityBuffer/shop/web"))
    assert f"  not used:\n    {name} is about to expire, at 2026-11-23 09:10 UTC (expireAfter)" in text
    document = explanation_document(explanation(plan, "CapacityBuffer/shop/web"))
    assert document["unused"] == [{"node": name, "why": "is about to expire, at 2026-11-23 09:10 UTC (expireAfter)"}]
    assert document["chunks"] == [{"count": 1, "requests": {"cpu": "1500m", "memory": "256Mi", "pods": "1"}}]
