"""What is there already: which nodes take chunks, how much, and which are taken first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.buffers import Recreation
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    HELD_ANNOTATION,
    HOLDS_ANNOTATION,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
)
from reconciler.model.placement import Holding, Placement, read_holdings, words_of_holdings
from reconciler.model.pods import DaemonSet
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import (
    buffer_ref,
    demand,
    instance_type,
    node,
    node_pool,
    one_of,
    overlay,
    pod,
    resources,
    shape,
    spread,
    web,
)

TYPES = (instance_type("small", cpu="2"), instance_type("large", cpu="8"))


def placed(view: ClusterView, *demands: Demand, options: PlacementOptions = PlacementOptions()) -> Placement:  # noqa: B008 - immutable
    return place(Problem(view, (node_pool(),), TYPES, demands, options=options))


def held(placement: Placement) -> dict[str, int]:
    return {
        item.node or item.node_claim or "": sum(holding.count for holding in item.holdings)
        for item in placement.occupied
    }


def young(name: str = "young", *, taints: tuple[Taint, ...] = (), **others: object) -> Node:
    """Registered, not initialized."""
    made = node(name, taints=taints, ready=False)
    labels = tuple(item for item in made.labels if item[0] != "karpenter.sh/initialized")
    return replace(made, labels=labels, **others)  # type: ignore[arg-type]


def on_its_way(name: str = "claim", *, types: tuple[str, ...] = ("small", "large"), **others: object) -> NodeClaim:
    asked = (one_of(INSTANCE_TYPE_LABEL, *types), one_of(ZONE_LABEL, "zone-a", "zone-b"))
    claim = NodeClaim(name, ((PLACEHOLDER_LABEL, "true"), (NODEPOOL_LABEL, "general")), requirements=asked)
    return replace(claim, **others)  # type: ignore[arg-type]


STARTUP, NOT_READY = Taint("cni", "", "NoSchedule"), Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
YOUNG_CLAIM = NodeClaim("claim", node_name="young", startup_taints=(STARTUP,))
AGENT = DaemonSet("system", "agent", shape("3500m", namespace="system"))
RUNNING_AGENT = pod(
    "agent-1", namespace="system", node="one", owner_kind="DaemonSet", owner_name="agent", pod_shape=AGENT.shape
)
GOING = pod(node="one", pod_shape=shape("4"), deleting=True)
FULL = ClusterView(nodes=(node("one", cpu="4"),), pods=(pod(node="one", pod_shape=shape("3")),))
MINIMUM = demand("minimum", count=4, recreation=Recreation.KEEP_MINIMUM)
IN_A = shape(node_selector={ZONE_LABEL: "zone-a"})
SPREAD_IN_A = web("1", node_selector={ZONE_LABEL: "zone-a"}, topology_spread=(spread(ZONE_LABEL),))
ELSEWHERE = on_its_way(requirements=(one_of(ZONE_LABEL, "zone-b", "zone-c"),))
CASES: dict[str, tuple[ClusterView, Demand, dict[str, int]]] = {
    "startup taints of a young node are looked past": (
        ClusterView(nodes=(young(taints=(STARTUP, NOT_READY)),), node_claims=(YOUNG_CLAIM,)), demand(count=1), {"young": 1}
    ),
    "other taints of it count": (ClusterView(nodes=(young(taints=(STARTUP,)),)), demand(count=1), {}),
    "a NodeClaim counts as the smallest that it may become": (
        ClusterView(node_claims=(on_its_way(),)), demand(count=3), {"claim": 1}
    ),
    "one that was launched counts as what it is": (
        ClusterView(node_claims=(on_its_way(allocatable=resources("7900m", "15Gi", pods="110")),)), demand(count=3), {"claim": 3}
    ),
    "a zone that is not decided meets only what all its zones meet": (
        ClusterView(node_claims=(on_its_way(),)), demand(count=1, pod_shape=IN_A), {}
    ),
    "zones of a NodeClaim that the pods cannot use are nothing to spread over": (
        ClusterView(nodes=(node("one"),), node_claims=(ELSEWHERE,)), demand(count=3, pod_shape=SPREAD_IN_A), {"one": 3}
    ),
    "daemons that are still to come have their room": (
        ClusterView(nodes=(node("one"),), daemon_sets=(AGENT,)), demand(count=1), {}
    ),
    "those that run have it once": (
        ClusterView(nodes=(node("one"),), daemon_sets=(AGENT,), pods=(RUNNING_AGENT,)),
        demand(count=1, pod_shape=shape("500m")), {"one": 1}
    ),
    "pods on their way out still take room": (
        ClusterView(nodes=(node("one", cpu="4"),), pods=(GOING,)), demand(count=1), {}
    ),
    "what runs may fill a KeepMinimum buffer": (FULL, MINIMUM, {"one": 4}),
    "but not a KeepEmpty one": (FULL, demand("empty", count=4), {"one": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("view", "asked", "where"), CASES.values(), ids=CASES)
def test_which_nodes_take_chunks(view: ClusterView, asked: Demand, where: dict[str, int]) -> None:
    assert held(placed(view, asked)) == where


def test_a_node_that_is_about_to_be_replaced_takes_nothing() -> None:
    view = ClusterView(nodes=(node("old"),))

    assert held(placed(view, demand(count=1), options=PlacementOptions(leaving=frozenset({"old"})))) == {}


def test_held_nodes_come_first_then_placeholders_then_the_fullest_that_fit() -> None:
    nodes = (
        node("full"),
        node("half"),
        node("held", annotations={HELD_ANNOTATION: "true"}),
        node("placeholder", labels={PLACEHOLDER_LABEL: "true"}),
    )
    pods = (
        pod("a", node="full", pod_shape=shape("3")),
        pod("b", node="half", pod_shape=shape("2")),
        pod("c", node="held", pod_shape=shape("3")),
    )
    view = ClusterView(nodes=nodes, pods=pods)

    assert held(placed(view, demand(count=1))) == {"held": 1}
    assert held(placed(view, demand(count=2))) == {"held": 1, "placeholder": 1}
    assert held(placed(view, demand(count=6))) == {"held": 1, "placeholder": 4, "full": 1}
    assert held(placed(view, demand(count=7))) == {"held": 1, "placeholder": 4, "half": 2}


def test_chunks_stay_where_they_were() -> None:
    """The buffer `b` comes after `a`, but keeps its node when `a` grows."""
    words = "3 of CapacityBuffer/shop/b"
    kept = node("kept", cpu="3", annotations={HELD_ANNOTATION: "true", HOLDS_ANNOTATION: words})
    view = ClusterView(nodes=(kept, node("other", cpu="3")))

    placement = placed(view, demand("a", count=3), demand("b", count=3))

    assert {item.node: item.holdings[0].demand.name for item in placement.occupied} == {"kept": "b", "other": "a"}


def test_what_a_bin_holds_can_be_read_back() -> None:
    holdings = (Holding(buffer_ref("a"), 0, 3), Holding(buffer_ref("b"), 2, 1))

    words = words_of_holdings(holdings)

    assert words == "3 of CapacityBuffer/shop/a, 1 of CapacityBuffer/shop/b#2"
    assert read_holdings(words) == {("CapacityBuffer/shop/a", 0): 3, ("CapacityBuffer/shop/b", 2): 1}
    assert read_holdings("made by hand, 2 of") == {}


def test_a_higher_priority_may_take_what_another_held() -> None:
    words = "3 of CapacityBuffer/shop/b"
    kept = node("kept", cpu="3", annotations={HELD_ANNOTATION: "true", HOLDS_ANNOTATION: words})

    placement = placed(ClusterView(nodes=(kept,)), demand("a", count=3, priority=1), demand("b", count=3))

    assert [item.holdings[0].demand.name for item in placement.occupied] == ["a"]


def test_pending_pods_take_free_room_before_chunks_and_get_no_new_nodes() -> None:
    waiting = [
        Demand(ObjectRef("", "Pod", "shop", f"p{number}"), (ChunkGroup(shape("2"), 1),), 1, opens_nodes=False)
        for number in range(3)
    ]

    placement = placed(ClusterView(nodes=(node("one", cpu="4"),)), demand(count=1), *waiting)

    assert [holding.demand.kind for holding in placement.occupied[0].holdings] == ["Pod", "Pod"]
    assert [item.demand.name for item in placement.unplaced] == ["p2"]
    assert [holding.demand.kind for item in placement.planned for holding in item.holdings] == ["CapacityBuffer"]


def test_room_is_never_counted_for_both_kinds_of_buffer() -> None:
    view = ClusterView(nodes=(node("one", cpu="4"),))
    minimum = demand("minimum", count=3, recreation=Recreation.KEEP_MINIMUM)

    assert held(placed(view, demand("empty", count=3), minimum)) == {"one": 4}


def test_what_ran_out_for_us_may_still_be_what_a_node_claim_becomes() -> None:
    """Karpenter knows nothing of our back-offs: where it launches is not decided."""
    claim = replace(on_its_way(), requirements=(one_of(INSTANCE_TYPE_LABEL, "large"),))
    view = ClusterView(node_claims=(claim,))
    asked = demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-a"}))
    options = PlacementOptions(back_offs=frozenset({("large", "zone-b", "on-demand")}))
    assert held(placed(view, asked, options=options)) == {}


def test_zones_of_a_node_that_is_made_for_others_are_nothing_to_spread_over() -> None:
    others = demand("api", count=1, pod_shape=shape("7500m"), priority=5)
    placement = placed(ClusterView(), others, demand(count=3, pod_shape=SPREAD_IN_A))
    assert placement.unplaced == ()
    assert ("zone-a", "zone-b") in {item.zones for item in placement.planned}


def test_nothing_is_known_of_overlays_where_its_type_is_not_sold() -> None:
    """It may have been launched there all the same: the catalog says what can be bought now."""
    gpu = overlay("gpu", one_of(ZONE_LABEL, "zone-a"), capacity=Resources.parse({"example.com/gpu": "1"}))
    wanting = demand(count=1, pod_shape=shape(requests=resources(**{"example.com/gpu": "1"})))

    def unplaced(zone: str) -> int:
        claim = replace(
            on_its_way(types=("small",)),
            requirements=(
                one_of(INSTANCE_TYPE_LABEL, "small"),
                one_of(ZONE_LABEL, zone),
            ),
        )
        problem = Problem(
            ClusterView(node_claims=(claim,)),
            (node_pool(),),
            (instance_type("small", cpu="2", zones=("zone-a",)),),
            (wanting,),
            overlays=(gpu,),
        )
        placement = place(problem)
        assert not violations(problem, placement)
        return 1 - sum(held(placement).values())

    assert unplaced("zone-a") == 0
    assert unplaced("zone-b") == 1
