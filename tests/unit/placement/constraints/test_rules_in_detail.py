"""Corners of the rules that a pod spec can state: which nodes spread looks at, whose labels count, bounds, addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, InstanceType, Node, NodePool
from reconciler.model.placement import Placement
from reconciler.model.pods import HostPort, NodeSelectorTerm, Pod
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import ClusterView
from reconciler.placement.batches import Batch
from reconciler.placement.checker.violations import violations
from reconciler.placement.constraints.node_rules import NodeReadiness
from reconciler.placement.loops import kernel
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, one_of, pod, shape, spread, term, web
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool
from tests.unit.placement.worlds import World, placed_with

DEDICATED = Taint("dedicated", "batch", "NoSchedule")


def placed(
    *demands: Demand,
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    pools: Sequence[NodePool] = (),
    types: Sequence[InstanceType] = (),
) -> Placement:
    """Placed and found right by the checker."""
    view = ClusterView(nodes=tuple(nodes), pods=tuple(pods))
    return World(view, pools, types, demands).placed_rightly()


def on(placement: Placement) -> dict[str | None, int]:
    return {item.node: sum(holding.count for holding in item.holdings) for item in placement.occupied}


@pytest.mark.parametrize(("policy", "count"), [("Honor", 3), ("Ignore", 1)])
def test_spread_looks_at_nodes_that_affinity_admits_or_at_all(policy: str, count: int) -> None:
    """Ignored, the empty zone-b, where the pods may not go, is the emptiest: one in zone-a is all that it allows."""
    even = spread(ZONE_LABEL, node_affinity_policy=policy)
    nodes = (node("a", zone="zone-a"), node("b", zone="zone-b"))
    wanted = demand(count=3, pod_shape=web(topology_spread=(even,), node_selector={ZONE_LABEL: "zone-a"}))
    assert on(placed(wanted, nodes=nodes)) == {"a": count}


@pytest.mark.parametrize(("policy", "count"), [("Honor", 3), ("Ignore", 1)])
def test_spread_looks_past_nodes_with_taints_or_not(policy: str, count: int) -> None:
    even = spread(ZONE_LABEL, node_taints_policy=policy)
    nodes = (node("a", zone="zone-a"), node("b", zone="zone-b", taints=(DEDICATED,)))
    wanted = demand(count=3, pod_shape=web(topology_spread=(even,)))
    assert on(placed(wanted, nodes=nodes)) == {"a": count}


def test_mismatch_label_keys_keep_apart_from_other_owners_only() -> None:
    apart = term(HOSTNAME_LABEL, mismatch_label_keys=("team",))
    red, blue = (web(pod_anti_affinity=(apart,), labels={"app": "web", "team": team}) for team in ("red", "blue"))
    there = pod("blue-0", node="a", pod_shape=blue)
    wanted = demand(count=2, pod_shape=red)
    assert on(placed(wanted, nodes=(node("a"), node("b")), pods=(there,))) == {"b": 2}


@pytest.mark.parametrize(
    ("operator", "bound", "name"),
    [(Operator.GTE, "8", "m-8x"), (Operator.GT, "4", "m-8x"), (Operator.LTE, "4", "m-4x"), (Operator.LT, "8", "m-4x")],
)
def test_bounds_in_pools_and_pods(operator: Operator, bound: str, name: str) -> None:
    types = tuple(
        replace(kind, labels=tuple(sorted({**dict(kind.labels), "example.com/cpu": size}.items())))
        for size in ("4", "8")
        for kind in (instance_type(f"m-{size}x", cpu=size, price=float(size)),)
    )
    bounded = Requirement("example.com/cpu", operator, (bound,))
    (by_pool,) = placed(demand(count=1), pools=(node_pool(requirements=(bounded,)),), types=types).planned
    terms = (NodeSelectorTerm((bounded,)),)
    (by_pod,) = placed(
        demand(count=1, pod_shape=web(required_node_terms=terms)), pools=(node_pool(),), types=types
    ).planned
    assert by_pool.instance_types == by_pod.instance_types == (name,)


def test_a_host_port_clashes_by_address_and_protocol() -> None:
    there = pod("dns", node="a", pod_shape=web(host_ports=(HostPort(53, "UDP", "10.0.0.1"),)))
    other_address = demand("other", count=1, pod_shape=web(host_ports=(HostPort(53, "UDP", "10.0.0.2"),)))
    other_protocol = demand("tcp", count=1, pod_shape=web(host_ports=(HostPort(53, "TCP", "10.0.0.1"),)))
    everywhere = demand("all", count=1, pod_shape=web(host_ports=(HostPort(53, "UDP"),)))
    assert on(placed(other_address, nodes=(node("a"),), pods=(there,))) == {"a": 1}
    assert on(placed(other_protocol, nodes=(node("a"),), pods=(there,))) == {"a": 1}
    assert on(placed(everywhere, nodes=(node("a"),), pods=(there,))) == {}


def test_spread_over_some_nodes_is_not_at_liberty_to_come_after_spread_over_all() -> None:
    """Both bring the same constraint, one for nodes of its team only: neither may rely on the other's chunks coming later."""
    even = spread(ZONE_LABEL)
    red = web(topology_spread=(even,), node_selector={"team": "red"})
    demands = (
        demand("first", count=3, pod_shape=red),
        demand("second", count=1, pod_shape=web(topology_spread=(even,)), opens_nodes=False),
    )
    pool = node_pool("general", requirements=(one_of("team", "red", "blue"),))
    types = (instance_type("small", zones=("zone-a", "zone-b", "zone-c")),)
    runs = pod("web-1", node="a", pod_shape=web())

    placement = placed(*demands, nodes=(node("a", zone="zone-a", pool=None),), pods=(runs,), pools=(pool,), types=types)

    assert sum(item.count for item in placement.unplaced) == 1


# Nodes that are still coming up, in words.


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ([0], "a is not ready yet"),
        ([0, 1], "a and 1 other are not ready yet"),
        ([0, 1, 2], "a and 2 others are not ready yet"),
    ],
)
def test_the_first_is_named_and_the_others_are_counted(bins: list[int], words: str) -> None:
    """It was `a and 1 others are`."""
    rule = NodeReadiness(["a", "b", "c"], [True, True, True])
    batch: Batch = None  # type: ignore[assignment]  # the words do not depend on it
    assert rule.reason(batch, bins) == words


# NodePools with limits: the same placement as without them while they are far, and never more than they allow when they are near.

TYPES = synthetic_instance_types()
DEMANDS = demands_of(decoded(pod_manifests(100)))
FAR = {"cpu": "100000", "memory": "1Pi", "nodes": "10000"}


def limited(**limits: str) -> NodePool:
    return replace(pool(), limits=Resources.parse(limits).amounts)


def placed_within(node_pool: NodePool) -> Placement:
    """In one order: others are tried for fewer chunks, each of them again by the same loops."""
    options = PlacementOptions(include_pending=True, instance_types=1)
    problem = Problem(ClusterView(), (node_pool,), TYPES, DEMANDS, options=options)
    with patch("reconciler.placement.engine.best.MOST_ORDERED", 0):
        return place(problem)


@pytest.mark.parametrize("compiled_from", [0, 10_000])
def test_limits_that_are_far_change_nothing(compiled_from: int) -> None:
    with patch("reconciler.placement.place.WORTH_COMPILING", compiled_from):
        with_limits, without = placed_within(limited(**FAR)), placed_within(pool())
    assert with_limits == without


@pytest.mark.parametrize("limits", [{"cpu": "20"}, {"cpu": "20", "memory": "66Gi"}, {"nodes": "7"}, {"memory": "30Gi"}])
def test_limits_that_are_near_are_kept_whichever_loops_find_the_placement(limits: dict[str, str]) -> None:
    node_pool = limited(**limits)
    with patch("reconciler.placement.place.WORTH_COMPILING", 0):
        compiled = placed_within(node_pool)
    with patch("reconciler.placement.place.WORTH_COMPILING", 10_000):
        in_numpy = placed_within(node_pool)

    assert compiled == in_numpy
    assert compiled.unplaced
    found = violations(Problem(ClusterView(), (node_pool,), TYPES, DEMANDS), compiled)
    assert found == ()


def test_a_new_node_beside_limited_pools_is_charged_to_none() -> None:
    """What was undone left its mark on the row where the loops make the next node of a pool without limits."""
    kept_apart = (term(HOSTNAME_LABEL, "db"),)
    database = shape("6", "1Gi", labels={"app": "db"}, pod_anti_affinity=kept_apart)
    small = shape("500m", "1Gi", node_selector={INSTANCE_TYPE_LABEL: "small"})
    in_vain = [ChunkGroup(item, 1) for item in (database, small, shape("1000", "1Gi"))]
    demands = (demand("a", groups=tuple(in_vain), whole=True), demand("b", pod_shape=database, count=1))
    pools = (node_pool("free"), node_pool("limited", limits={"cpu": "4"}))
    types = (instance_type("small", cpu="2", price=0.1), instance_type("large", cpu="8", price=0.4))
    placement = placed_with(kernel.plain(), World(ClusterView(), pools, types, demands))

    assert [node.node_pool for node in placement.planned] == ["free"]


def test_terms_are_alternatives_and_name_nodes_too() -> None:
    by_zone = NodeSelectorTerm((one_of(ZONE_LABEL, "zone-b"),))
    by_name = NodeSelectorTerm(fields=(one_of("metadata.name", "a"),))
    nodes = (node("a", cpu="200m"), node("b", cpu="200m", zone="zone-b"), node("c", cpu="200m"))
    wanted = demand(count=6, pod_shape=web(required_node_terms=(by_zone, by_name)))
    assert on(placed(wanted, nodes=nodes)) == {"a": 2, "b": 2}
