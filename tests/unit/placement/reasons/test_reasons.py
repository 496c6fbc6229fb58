"""Reasons say the cause, how many candidates gave it, and the nearest miss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import NODEPOOL_LABEL, ZONE_LABEL, InstanceType, NodePool
from reconciler.model.placement import Cause, UnplacedReason
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.provisioning_requests import Phase, RequestKind, RequestState
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import RequestRecord
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, one_of, shape

TYPES = tuple(instance_type(f"m-{cpu}x", cpu=str(cpu), memory="64Gi") for cpu in (4, 8, 16))


def reasons(
    wanted: Demand,
    *,
    view: ClusterView | None = None,
    pools: tuple[NodePool, ...] = (node_pool(),),
    types: tuple[InstanceType, ...] = TYPES,
    options: PlacementOptions | None = None,
) -> tuple[UnplacedReason, ...]:
    """Of the chunks that found no place."""
    placement = place(Problem(view or ClusterView(), pools, types, (wanted,), options=options or PlacementOptions()))
    (left,) = placement.unplaced
    return left.reasons


def test_an_empty_term_of_node_affinity_matches_nothing() -> None:
    """Neither a node that is there nor a new one (k8s.io/api, core/v1, NodeSelectorTerm)."""
    words = "its required node affinity has none but empty terms, and an empty term matches no node"
    nothing = demand(count=1, pod_shape=shape(required_node_terms=(NodeSelectorTerm(),)))
    (reason,) = reasons(replace(nothing, opens_nodes=False), view=ClusterView(nodes=(node("a"),)))
    assert reason == UnplacedReason(Cause.NODE_LABELS, 1, words)
    (reason,) = reasons(nothing)
    assert reason == UnplacedReason(Cause.NODE_POOL_LABELS, 1, f"NodePool general: {words}", node_pool="general")


def test_what_nobody_could_ever_hold() -> None:
    wanted = demand(count=1, pod_shape=shape("99999999900m", "2199023255552Mi"))

    (reason,) = reasons(wanted)

    lacking = "99,999,984 CPU and 2199023190026Mi memory"
    there = "m-16x has 15900m CPU and 65526Mi memory for pods"
    assert reason.example == f"NodePool general: 1 type fits but for {lacking} ({there}), 2 more lack more"


def test_that_nothing_is_for_sale_comes_before_what_is_asked_for() -> None:
    none_for_the_pool = node_pool(requirements=(one_of(ZONE_LABEL, "zone-x"),))

    (empty,) = reasons(demand(count=1), types=())
    (other,) = reasons(demand(count=1), pools=(none_for_the_pool,))

    assert empty.example == "NodePool general: the catalog has no offering that can be had now"
    assert (
        other.example
        == "NodePool general: the catalog has no instance type with topology.kubernetes.io/zone=zone-x, which the NodePool requires"
    )


def test_a_taint_does_not_hide_what_else_is_in_the_way() -> None:
    taint = Taint("dedicated", "batch", "NoSchedule")
    words = "NodePool general has taint dedicated=batch:NoSchedule, which is not tolerated"
    tainted = (node_pool(taints=(taint,)),)
    (reason,) = reasons(demand(count=1, pod_shape=shape("16100m")), pools=tainted)
    assert reason.example == (
        f"{words}; apart from that, 1 type fits but for 200m CPU (m-16x has 15900m CPU for pods), 2 more lack more"
    )
    (reason,) = reasons(demand(count=1, pod_shape=shape(node_selector={NODEPOOL_LABEL: "gpu"})), pools=tainted)
    assert reason.example == f"{words}; apart from that, it makes nodes with {NODEPOOL_LABEL}=general, not gpu"
    (reason,) = reasons(demand(count=1), pools=tainted)
    assert reason.example == words


def test_what_is_placed_as_a_whole_names_what_stopped_its_first_chunk_without_a_place() -> None:
    """It named another pool's taint: all of it was taken away before anybody looked, so that the limit seemed to have room."""
    limited = node_pool("limited", limits={"cpu": "20"})
    tainted = node_pool("gpu", taints=(Taint("dedicated", "gpu", "NoSchedule"),))
    wanted = demand(count=10, pod_shape=shape("3500m"), whole=True)
    first, *others = reasons(wanted, pools=(limited, tainted))
    assert first.cause == "NodePool limit"
    assert first.example == "NodePool limited is at its cpu limit of 20, once 5 of its 10 pods have a place"
    assert [item.cause for item in others] == ["NodePool taints", "all or nothing"]
    assert others[1].example == (
        "CapacityBuffer/shop/web is placed as a whole or not at all: at least 5 of its 10 pods would have a place"
    )


def test_one_pod_of_a_whole_has_a_place() -> None:
    wanted = demand(count=3, pod_shape=shape("3500m"), whole=True)
    first, *_ = reasons(wanted, pools=(node_pool("limited", limits={"cpu": "4"}),))
    assert first.example == "NodePool limited is at its cpu limit of 4, once 1 of its 3 pods has a place"


def test_the_group_that_was_stopped_has_the_reasons() -> None:
    """Groups after it were not looked at, and the one before it has room."""
    small, large = ChunkGroup(shape("500m"), 2), ChunkGroup(shape("200"), 1)
    wanted = demand(count=0, groups=(small, large), desired=3, whole=True)
    placement = place(Problem(ClusterView(), (node_pool(),), TYPES, (wanted,)))
    causes = [[reason.cause for reason in item.reasons] for item in placement.unplaced]
    assert causes == [["all or nothing"], ["instance type too small", "all or nothing"]]


def test_the_pool_that_came_farthest_comes_first() -> None:
    """Reasons were sorted by how many candidates gave them, so that full nodes and a taint hid the limit."""
    nodes = tuple(node(f"full-{number}", cpu="1") for number in range(5))
    pools = (
        node_pool("a-tainted", taints=(Taint("dedicated", "gpu", "NoSchedule"),)),
        node_pool("b-elsewhere", requirements=(one_of("disk", "hdd"),)),
        node_pool("c-limited", limits={"cpu": "3"}),
    )
    asked = replace(demand(count=1, pod_shape=shape("3500m", node_selector={"disk": "ssd"})))
    found = reasons(asked, view=ClusterView(nodes=nodes), pools=pools)
    assert [item.cause for item in found][-1] == "node labels"
    limited = replace(pools[2], template=replace(pools[2].template, labels=(("disk", "ssd"),)))
    found = reasons(asked, view=ClusterView(nodes=nodes), pools=(*pools[:2], limited))
    assert [item.cause for item in found] == ["NodePool limit", "NodePool labels", "NodePool taints", "node labels"]


CHECK = RequestState(RequestKind.CHECK, Phase.WAITING, RequestRecord("", ""))
GETS_NONE = (
    "a check-capacity request gets no new nodes: one of class best-effort-atomic-scale-up.autoscaling.x-k8s.io does"
)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (demand(request=CHECK), GETS_NONE),
        (
            demand(ref=ObjectRef("", "Pod", "shop", "api")),
            "Karpenter makes nodes for pods, headroom does not",
        ),
        (demand(fulfilment=Fulfilment.NATIVE), "new nodes for this buffer are left to whoever keeps it"),
        (demand(), "headroom makes no new nodes for this demand now"),
    ],
)
def test_without_any_node_the_reason_says_who_makes_new_ones(wanted: Demand, why: str) -> None:
    (reason,) = reasons(replace(wanted, opens_nodes=False))
    assert reason == UnplacedReason(Cause.NO_NODE, 1, f"the cluster has no node, and {why}")


def test_a_request_that_finds_all_nodes_full_learns_what_to_ask_for_instead() -> None:
    view = ClusterView(nodes=(node("a", cpu="1"),))
    small, none = reasons(demand(pod_shape=shape("2"), request=CHECK, opens_nodes=False), view=view)
    assert small.cause == "node too small"
    assert none == UnplacedReason(Cause.NO_NEW_NODES, 1, GETS_NONE)


def test_the_node_with_the_fewest_wrong_labels() -> None:
    nodes = (node("a", labels={"disk": "hdd"}), node("b", labels={"disk": "ssd"}), node("c", zone="zone-b"))
    asked = shape(node_selector={"disk": "ssd", ZONE_LABEL: "zone-b"})
    (reason,) = reasons(demand(count=1, pod_shape=asked, opens_nodes=False), view=ClusterView(nodes=nodes))
    assert reason == UnplacedReason(Cause.NODE_LABELS, 3, "b has topology.kubernetes.io/zone=zone-a, not zone-b")
    lonely = ClusterView(nodes=nodes[2:])
    (reason,) = reasons(demand(count=1, pod_shape=asked, opens_nodes=False), view=lonely)
    assert reason.example == "c has no label disk"
