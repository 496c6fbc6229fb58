"""Chunks stay where they were when all is placed again."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION, HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import Holding, words_of_holdings
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.engine.retention import stays_of
from reconciler.placement.nodes.planned import dual_of
from reconciler.placement.place import place, solve
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, pod, shape, term
from tests.unit.placement.worlds import World


def holding_node(name: str, zone: str, *holdings: Holding) -> Node:
    held = {HELD_ANNOTATION: "true", HOLDS_ANNOTATION: words_of_holdings(holdings)}
    return node(name, zone=zone, cpu="16", memory="64Gi", annotations=held)


@pytest.mark.parametrize("key", [HOSTNAME_LABEL, ZONE_LABEL])
def test_chunks_with_affinity_to_each_other_stay_where_most_of_them_are(key: str) -> None:
    """The few came beside a chunk of lower priority, which is placed after them; and where pods run is looked at first."""
    near = shape("1", labels={"app": "api"}, pod_affinity=(term(key, "api"),))
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

    state = solve(problem, Cache()).state

    assert stays_of(state) == {(str(web.ref), 0): [(state.bins.index["there"], 1)]}


# What room on new nodes is worth, and that nodes are made larger for chunks to come.

TYPES = (
    instance_type("small", cpu="1100m", memory="8Gi", price=0.1),
    instance_type("medium", cpu="2100m", memory="16Gi", price=0.21),
    instance_type("large", cpu="4100m", memory="32Gi", price=0.3),
)
amounts = st.integers(0, 50)


def sizes(demands: int) -> list[str]:
    """The types of planned nodes for so many demands of one chunk, no two of which ask for the same."""
    wanted = [demand(f"of-{number}", count=1, pod_shape=shape(f"{900 + number}m")) for number in range(demands)]
    state = solve(World(ClusterView(), (node_pool(),), TYPES, wanted), Cache()).state
    types = state.offers[0].offerings.types
    return sorted(types[number].name for number in state.planned.type[: state.planned.count].tolist())


def test_nodes_grow_where_the_room_that_is_added_costs_little_more_than_it_is_worth() -> None:
    """A small node for each costs 0.1; to make one large costs 0.2, for three times the room."""
    assert sizes(16) == ["large"] * 4


def test_room_that_nobody_came_to_is_not_bought() -> None:
    assert sizes(18) == ["large"] * 4 + ["medium"]


@example([((19, 0, 0), 21), ((19, 0, 1), 21)], (19, 0, 1))
@given(
    st.lists(st.tuples(st.tuples(amounts, amounts, amounts), st.integers(1, 100)), min_size=1, max_size=8),
    st.tuples(amounts, amounts, amounts),
)
def test_the_worth_is_what_a_linear_program_finds(
    types: list[tuple[tuple[int, ...], int]], asked: tuple[int, ...]
) -> None:
    """A resource that no type has is worth nothing."""
    rooms, prices = np.array([room for room, _ in types], dtype=float), np.array([float(price) for _, price in types])
    wanted = np.where(rooms.any(axis=0), np.array(asked, dtype=float), 0.0)

    worth = dual_of(rooms, prices, np.array(asked, dtype=float))

    assert (worth >= 0).all()
    assert (rooms @ worth <= prices * (1 + 1e-6)).all()
    assert wanted @ worth == pytest.approx(_most(rooms, prices, wanted), rel=1e-6, abs=1e-6)


def _most(rooms: np.ndarray, prices: np.ndarray, asked: np.ndarray) -> float:
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    worth = [solver.addVariable(lb=0, ub=1e6) for _ in asked]
    for room, price in zip(rooms.tolist(), prices.tolist(), strict=True):
        if any(room):
            solver.addConstr(sum(amount * item for amount, item in zip(room, worth, strict=True) if amount) <= price)
    solver.maximize(sum(amount * item for amount, item in zip(asked.tolist(), worth, strict=True)))
    found = [solver.val(item) for item in worth]
    return float(asked @ np.array(found))
