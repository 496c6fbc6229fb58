"""What is there already: which nodes take chunks, how much, and which are taken first."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.buffers import Recreation
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    HELD_ANNOTATION,
    HOLDS_ANNOTATION,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    Node,
    NodeClaim,
    NodeOverlay,
)
from reconciler.model.placement import Holding, Placement, read_holdings, words_of_holdings
from reconciler.model.pods import DaemonSet, PodShape, TopologySpread
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, one_of, pod, resources, selects, shape

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
    return NodeClaim(
        name=name,
        labels=((PLACEHOLDER_LABEL, "true"), (NODEPOOL_LABEL, "general")),
        requirements=(
            one_of("node.kubernetes.io/instance-type", *types),
            one_of("topology.kubernetes.io/zone", "zone-a", "zone-b"),
        ),
        **others,  # type: ignore[arg-type]
    )


def test_a_node_that_is_about_to_be_replaced_takes_nothing() -> None:
    view = ClusterView(nodes=(node("old"),))

    assert held(placed(view, demand(count=1), options=PlacementOptions(leaving=frozenset({"old"})))) == {}


def test_startup_taints_of_a_young_node_are_looked_past() -> None:
    startup = Taint("cni", "", "NoSchedule")
    not_ready = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
    view = ClusterView(
        nodes=(young(taints=(startup, not_ready)),),
        node_claims=(NodeClaim("claim", node_name="young", startup_taints=(startup,)),),
    )

    assert held(placed(view, demand(count=1))) == {"young": 1}


def test_a_node_claim_counts_as_the_smallest_it_may_become() -> None:
    placement = placed(ClusterView(node_claims=(on_its_way(),)), demand(count=3))

    assert held(placement) == {"claim": 1}


def test_a_launched_node_claim_counts_as_what_it_is() -> None:
    launched = on_its_way(allocatable=resources("7900m", "15Gi", pods="110"))

    assert held(placed(ClusterView(node_claims=(launched,)), demand(count=3))) == {"claim": 3}


def test_a_zone_that_is_not_decided_meets_only_what_all_its_zones_meet() -> None:
    def asking(zone: str) -> PodShape:
        return shape(node_selector={"topology.kubernetes.io/zone": zone})

    view = ClusterView(node_claims=(on_its_way(),))

    assert held(placed(view, demand(count=1, pod_shape=asking("zone-a")))) == {}


def test_leaves_room_for_daemons_that_are_still_to_come() -> None:
    agent = DaemonSet("system", "agent", shape("3500m", namespace="system"))
    running = pod(
        "agent-1", namespace="system", node="one", pod_shape=agent.shape, owner_kind="DaemonSet", owner_name="agent"
    )
    waiting = ClusterView(nodes=(node("one"),), daemon_sets=(agent,))

    assert held(placed(waiting, demand(count=1))) == {}
    assert held(placed(replace(waiting, pods=(running,)), demand(count=1, pod_shape=shape("500m")))) == {"one": 1}


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


def test_what_runs_may_fill_a_keep_minimum_buffer_but_not_a_keep_empty_one() -> None:
    view = ClusterView(nodes=(node("one", cpu="4"),), pods=(pod(node="one", pod_shape=shape("3")),))
    minimum = demand("minimum", count=4, recreation=Recreation.KEEP_MINIMUM)

    assert held(placed(view, minimum)) == {"one": 4}
    assert held(placed(view, demand("empty", count=4))) == {"one": 1}


def test_room_is_never_counted_for_both_kinds_of_buffer() -> None:
    view = ClusterView(nodes=(node("one", cpu="4"),))
    minimum = demand("minimum", count=3, recreation=Recreation.KEEP_MINIMUM)

    assert held(placed(view, demand("empty", count=3), minimum)) == {"one": 4}


def test_pods_on_their_way_out_still_take_room() -> None:
    going = pod(node="one", pod_shape=shape("4"), deleting=True)

    assert held(placed(ClusterView(nodes=(node("one", cpu="4"),), pods=(going,)), demand(count=1))) == {}


def test_what_ran_out_for_us_may_still_be_what_a_node_claim_becomes() -> None:
    """Karpenter knows nothing of our back-offs: where it launches is not decided."""
    claim = replace(on_its_way(), requirements=(one_of("node.kubernetes.io/instance-type", "large"),))
    view = ClusterView(node_claims=(claim,))
    asked = demand(count=1, pod_shape=shape(node_selector={"topology.kubernetes.io/zone": "zone-a"}))
    options = PlacementOptions(back_offs=frozenset({("large", "zone-b", "on-demand")}))
    assert held(placed(view, asked, options=options)) == {}


def spread_in_a() -> PodShape:
    app = selects()
    return shape(
        labels={"app": "web"},
        node_selector={"topology.kubernetes.io/zone": "zone-a"},
        topology_spread=(TopologySpread("topology.kubernetes.io/zone", 1, "DoNotSchedule", app),),
    )


def test_zones_of_a_node_claim_that_the_pods_cannot_use_are_nothing_to_spread_over() -> None:
    asked = demand(count=3, pod_shape=spread_in_a())
    view = ClusterView(nodes=(node("one"),))
    assert held(placed(view, asked)) == {"one": 3}
    elsewhere = replace(on_its_way(), requirements=(one_of("topology.kubernetes.io/zone", "zone-b", "zone-c"),))
    assert held(placed(replace(view, node_claims=(elsewhere,)), asked)) == {"one": 3}


def test_nor_are_those_of_a_node_that_is_made_for_others() -> None:
    others = demand("api", count=1, pod_shape=shape("7500m"), priority=5)
    placement = placed(ClusterView(), others, demand(count=3, pod_shape=spread_in_a()))
    assert placement.unplaced == ()
    assert ("zone-a", "zone-b") in {item.zones for item in placement.planned}


def test_nothing_is_known_of_overlays_where_its_type_is_not_sold() -> None:
    """It may have been launched there all the same: the catalog says what can be bought now."""
    gpu = NodeOverlay(
        ref=ObjectRef("karpenter.sh", "NodeOverlay", "", "gpu"),
        requirements=(one_of("topology.kubernetes.io/zone", "zone-a"),),
        capacity=Resources.parse({"example.com/gpu": "1"}),
    )
    wanting = demand(count=1, pod_shape=shape(requests=resources(**{"example.com/gpu": "1"})))

    def unplaced(zone: str) -> int:
        claim = replace(
            on_its_way(types=("small",)),
            requirements=(
                one_of("node.kubernetes.io/instance-type", "small"),
                one_of("topology.kubernetes.io/zone", zone),
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


def test_other_taints_of_a_young_node_count() -> None:
    view = ClusterView(nodes=(young(taints=(Taint("gpu", "", "NoSchedule"),)),))

    assert held(placed(view, demand(count=1))) == {}
