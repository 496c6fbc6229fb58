"""Held nodes become smaller: chunks leave for cheaper room, then Karpenter takes the node that they left."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.requirements import Taint
from tests.builders import instance_type
from tests.fakes.embedded import DELAYS, LARGE, SMALL, Document, buffer, in_node_pool, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster


def shrunk(consolidate_after: str = "60s", budget: str = "100%", chunks: int = 1, **more: Any) -> KeptCluster:
    """Five chunks on one large node, where one small node would do for the one chunk that is asked for now."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    disruption = {"consolidateAfter": consolidate_after, "budgets": [{"nodes": budget}], **more}
    shop.want(5, node_pool(disruption=disruption), within=30)
    assert types(shop) == ["m-8x"]
    shop.passes.clear()
    shop.cluster.apply(buffer(replicas=chunks))
    return shop


def types(shop: KeptCluster) -> list[str]:
    return sorted(node.label("node.kubernetes.io/instance-type") or "" for node in shop.cluster.view().nodes)


def provisioning(shop: KeptCluster) -> str:
    """What the buffer's condition says, which is True as long as its capacity is there."""
    told = [
        item for outcome in shop.passes[-1].plan.demands for item in outcome.conditions if item.type == "Provisioning"
    ]
    return "all the time" if [item.status for item in told] == ["True"] else str(told)


def test_an_empty_buffer_that_shrank_gets_a_smaller_node() -> None:
    shop = shrunk()
    shop.keep(40)
    assert types(shop) == ["m-8x"]
    for _ in range(60):
        shop.keep(2)
        assert provisioning(shop) == "all the time"
    assert types(shop) == ["m-2x"]
    assert shop.keep(3600, step=20) == []
    assert shop.cluster.view().inventory.records.get("departures") is None


@pytest.mark.parametrize(
    "limits",
    [{"consolidate_after": "Never"}, {"budget": "0"}, {"chunks": 5}, {"chunks": 4}],
    ids=["never", "no budget", "the same size", "a saving that is too small"],
)
def test_a_node_stays_within_the_limits_of_its_node_pool(limits: dict[str, Any]) -> None:
    shop = shrunk(**limits)
    shop.keep(1800, step=10)
    assert types(shop) == ["m-8x"]


def test_a_node_is_left_while_the_nodes_of_another_node_pool_are_on_their_way() -> None:
    shop = KeptCluster(instance_types=(SMALL, LARGE), delays=replace(DELAYS, register=timedelta(seconds=90)))
    names = ("web", "other")
    for name in names:
        shop.cluster.apply(node_pool(name, consolidate_after="60s"))
        shop.cluster.apply(workload(name, replicas=0, cpu="1500m", affinity=in_node_pool(name)))
        shop.cluster.apply(buffer(name, of=name, replicas=5))
    shop.keep(200)
    for name in names:
        shop.cluster.apply(buffer(name, of=name, replicas=1))
    shop.keep(30)
    assert len(shop.cluster.view().node_claims) == 4, "both have their smaller node on its way"
    shop.keep(120)
    assert types(shop) == ["m-2x", "m-2x"]


def test_once_a_pod_has_come_to_a_node_that_chunks_left_another_may_be_left() -> None:
    """Karpenter itself moves pods of other nodes to such a node."""
    shop = shrunk()
    while not shop.cluster.view().inventory.records.get("departures"):
        shop.keep(1)
    shop.keep(30, workload("busy", cpu="6"))
    assert shop.cluster.view().inventory.records.get("departures") is None
    assert types(shop) == ["m-2x", "m-8x"]


def on_types(*names: str) -> Document:
    term = {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_dear_nodes_that_cannot_be_had_for_less_do_not_keep_others_from_their_turn() -> None:
    """Three buffers are for one dear instance type each, so their nodes stay. The sums of requests do not show that."""
    dear = [instance_type(f"{name}-8x", cpu="8", memory="32Gi", price=0.5) for name in ("x", "y", "z")]
    shop = KeptCluster(instance_types=(SMALL, LARGE, *dear))
    shop.cluster.apply(node_pool(consolidate_after="60s"))
    shop.cluster.apply(workload(replicas=0, cpu="1500m", affinity=on_types("m-2x", "m-8x")))
    for kind in dear:
        shop.cluster.apply(workload(kind.name, replicas=0, cpu="1500m", affinity=on_types(kind.name)))
        shop.cluster.apply(buffer(kind.name, of=kind.name, replicas=1))
    shop.keep(30, buffer(replicas=5))
    assert types(shop) == ["m-8x", "x-8x", "y-8x", "z-8x"]
    shop.keep(3600, buffer(replicas=1), step=20)
    assert types(shop) == ["m-2x", "x-8x", "y-8x", "z-8x"]


def test_no_saving_is_promised_from_room_that_chunks_and_moved_pods_would_share() -> None:
    """A node that takes chunks is held, and Karpenter moves no pod to a held node. So the pod would stay where it is."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    shop.cluster.apply(node_pool(consolidate_after="60s"))
    shop.add_node("busy", "m-8x")
    shop.cluster.apply(workload("busy", replicas=2, cpu="3700m"))
    shop.wait(5)
    shop.add_node("web", "m-2x")
    shop.keep(
        30,
        workload(cpu="950m"),
        buffer(of="small", replicas=1),
        workload("small", replicas=0, cpu="600m"),
    )
    shop.cluster.scale(workload_ref("busy"), 1)
    assert shop.keep(3600, step=20) == []
    assert types(shop) == ["m-2x", "m-8x"]


NOT_UNDERUTILIZED = {
    "consolidateAfter": "60s",
    "budgets": [{"nodes": "0", "reasons": ["Underutilized"]}, {"nodes": "100%"}],
}


def with_too_many_pods_for_one_smaller_node(**more: Any) -> KeptCluster:
    """Six pods of 1.5 CPU and a chunk on a node of 16 CPU: one of 8 holds five of the pods."""
    huge = instance_type("m-16x", cpu="16", memory="64Gi", price=0.8)
    shop = KeptCluster(instance_types=(SMALL, LARGE, huge), provisions_pending=True)
    shop.keep(30, node_pool(consolidate_after="60s", **more), workload(replicas=9, cpu="1500m"), buffer(replicas=1))
    assert types(shop) == ["m-16x"]
    shop.cluster.scale(workload_ref(), 6)
    return shop


def test_pods_get_several_smaller_nodes_where_one_would_have_to_be_as_large() -> None:
    """Karpenter replaces a node by one node at most. So headroom makes the nodes, and Karpenter moves the pods there."""
    shop = with_too_many_pods_for_one_smaller_node()
    shop.keep(55)
    shop.passes.clear()
    for _ in range(30):
        shop.keep(1)
        assert len(shop.running_pods()) == 6
        assert not shop.passes or provisioning(shop) == "all the time"
    assert types(shop) == ["m-2x", "m-2x", "m-8x"]
    made = [creation.reason for each in shop.passes for creation in each.plan.node_claims.create]
    assert sorted(reason.partition(" of ")[2].partition("-")[0] for reason in made) == [
        "CapacityBuffer/shop/web",
        "Node/node",
        "Node/node",
    ]
    held = [node.name for node in shop.cluster.view().nodes if node.annotation("headroom.dev/held") == "true"]
    assert len(held) == 1, "nodes of pods are Karpenter's own again"
    assert shop.keep(3600, step=20) == []


@pytest.mark.parametrize(("limit", "left"), [("27", ["m-16x"]), ("28", ["m-2x", "m-2x", "m-8x"])])
def test_nodes_for_pods_and_chunks_together_are_within_the_limits(limit: str, left: list[str]) -> None:
    """Of 16 CPU, 10 more for the pods and 2 for the chunk."""
    shop = with_too_many_pods_for_one_smaller_node(limits={"cpu": limit})
    shop.keep(120)
    assert types(shop) == left


@pytest.mark.parametrize("evicted", [0, 6])
def test_room_that_was_made_for_pods_of_a_node_that_drains_is_for_them_and_not_for_chunks(
    monkeypatch: pytest.MonkeyPatch, evicted: int
) -> None:
    """Karpenter drains a node once its own new nodes are there. Then kube-scheduler needs a moment for each pod."""
    shop = with_too_many_pods_for_one_smaller_node()
    shop.keep(55)
    while len(types(shop)) < 2:
        shop.keep(1)
    shop.keep(100, node_pool(disruption=NOT_UNDERUTILIZED), step=5)
    assert types(shop) == ["m-16x", "m-2x", "m-2x", "m-8x"]
    view = shop.cluster.view()
    left = next(node for node in view.nodes if node.label("node.kubernetes.io/instance-type") == "m-16x")
    drained = replace(left, taints=(*left.taints, Taint("karpenter.sh/disrupted", "", "NoSchedule")))
    nodes = [drained if node is left else node for node in view.nodes]
    pods = [replace(pod, node_name=None) if evicted and pod.node_name == left.name else pod for pod in view.pods]
    now = replace(view, nodes=tuple(nodes), pods=tuple(pods))
    monkeypatch.setattr(shop.cluster, "view", lambda: now)
    plan = shop.cycle.plan().required_plan
    assert plan.pending.placed_on_existing == evicted
    assert not [*plan.node_claims.create, *plan.node_claims.release]
    assert evicted or not plan.node_claims.hold
    assert [(outcome.on_existing, outcome.unplaced) for outcome in plan.demands] == [(1, 0)]


def test_room_that_karpenter_moves_no_pods_to_is_given_up() -> None:
    shop = with_too_many_pods_for_one_smaller_node()
    shop.keep(55)
    while len(types(shop)) < 2:
        shop.keep(1)
    shop.keep(300, node_pool(disruption=NOT_UNDERUTILIZED), step=5)
    assert types(shop) == ["m-16x", "m-2x", "m-2x", "m-8x"], "it waits for the pods"
    shop.keep(3600, step=20)
    assert types(shop) == ["m-16x"]
