"""Chunks stay where they were when all is placed again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION, HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import Holding, words_of_holdings
from reconciler.model.pods import PodAffinityTerm
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from reconciler.placement.engine.retention import stays_of
from reconciler.placement.memory import Memory
from reconciler.placement.place import place, solve
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, pod, shape

NEAR_API = LabelSelector((("app", "api"),))


def holding_node(name: str, zone: str, *holdings: Holding) -> Node:
    held = {HELD_ANNOTATION: "true", HOLDS_ANNOTATION: words_of_holdings(holdings)}
    return node(name, zone=zone, cpu="16", memory="64Gi", annotations=held)


@pytest.mark.parametrize("key", [HOSTNAME_LABEL, ZONE_LABEL])
def test_chunks_with_affinity_to_each_other_stay_where_most_of_them_are(key: str) -> None:
    """The few came beside a chunk of lower priority, which is placed after them; and where pods run is looked at first."""
    near = replace(shape("1", labels={"app": "api"}), pod_affinity=(PodAffinityTerm(key, NEAR_API),))
    together = demand("together", count=20, pod_shape=near, priority=5)
    single = demand("single", count=1, pod_shape=shape("14", labels={"app": "api"}))
    few = holding_node("few", "zone-a", Holding(together.ref, 0, 1), Holding(single.ref, 0, 1))
    many = holding_node("many", "zone-b", Holding(together.ref, 0, 16))
    problem = Problem(
        ClusterView(nodes=(few, many), pods=(pod(node="few", pod_shape=shape("10m")),)),
        (node_pool(limits={"nodes": "0"}),),
        (instance_type(),),
        (together, single),
    )

    placed = {item.node: {held.demand: held.count for held in item.holdings} for item in place(problem).occupied}

    assert placed == {"many": {together.ref: 16}, "few": {together.ref: 1, single.ref: 1}}


def test_no_order_is_looked_for_in_which_chunks_would_stay_on_a_node_that_is_left() -> None:
    """A trial of another placement looked through all orders, each time in vain."""
    web = demand("web", count=3)
    nodes = (
        holding_node("left", "zone-a", Holding(web.ref, 0, 2)),
        holding_node("there", "zone-a", Holding(web.ref, 0, 1)),
    )
    options = PlacementOptions(leaving=frozenset({"left"}))
    problem = Problem(ClusterView(nodes=nodes), (node_pool(),), (instance_type(),), (web,), options=options)

    state = solve(problem, Memory()).state

    assert stays_of(state) == {(str(web.ref), 0): [(state.bins.index["there"], 1)]}
