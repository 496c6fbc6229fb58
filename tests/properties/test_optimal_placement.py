"""The optimal mode against the fast one, whatever the cluster, the pools and the demands are."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.placement import Placement
from reconciler.model.view import ClusterView
from reconciler.optimizer.columns import fill_in_order, greedy_fill
from reconciler.optimizer.planned_chunks import PackingProblem, packing_problem
from reconciler.placement.checker.violations import violations
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node_pool, shape, spread
from tests.unit.placement.worlds import ZONES, World, catalogue, place_in_mode, priced_by_zone, worlds


def placed(world: World, *, optimal: bool) -> Placement:
    return world.under(include_pending=True, optimal=optimal).placed()


def _dear(problem: PackingProblem) -> PackingProblem:
    """So that the fast placement's own nodes are not simply taken again."""
    return replace(problem, nodes=tuple(replace(pattern, price=pattern.price * 10) for pattern in problem.nodes))


def _evenly(name: str, app: str, recreation: Recreation = Recreation.KEEP_EMPTY) -> Demand:
    """One small chunk that counts under its own spread constraint over hosts."""
    constraint = spread(HOSTNAME_LABEL, app=app)
    made = demand(name, count=1, pod_shape=shape("100m", labels={"app": app}, topology_spread=(constraint,)))
    return replace(made, recreation=recreation)


KEPT_MINIMUM_TOO = World(
    ClusterView(),
    (node_pool(),),
    catalogue(ZONES),
    (
        _evenly("api", "api"),
        _evenly("web-1", "web"),
        _evenly("web-2", "web"),
        _evenly("api-kept", "api", Recreation.KEEP_MINIMUM),
    ),
)
"""Of two new nodes each may hold one chunk of an app, whether or not what runs may be one of them."""


@settings(max_examples=30, deadline=None)
@given(world=worlds(), factors=st.sampled_from([(1.0, 1.0, 1.0), (1.0, 0.7, 1.3)]))
@example(world=KEPT_MINIMUM_TOO, factors=(1.0, 1.0, 1.0))
def test_what_it_packs_is_valid_even_where_it_is_not_cheaper(world: World, factors: tuple[float, ...]) -> None:
    world = priced_by_zone(world, factors)

    def found(packed: Placement, _fast: Placement, problem: Problem) -> str:
        return "what was cheaper broke a rule" if violations(problem, packed) else ""

    with (
        patch("reconciler.optimizer.place_in_mode.packing_problem", lambda state: _dear(packing_problem(state))),
        patch("reconciler.optimizer.place_in_mode._objection", found),
    ):
        said = " ".join(placed(world, optimal=True).assumptions)

    assert "broke a rule" not in said
    assert "were thought to" not in said


@settings(max_examples=10, deadline=None)
@given(world=worlds())
def test_the_same_input_has_the_same_answer(world: World) -> None:
    assert placed(world, optimal=True) == placed(world, optimal=True)


SMALL_TYPES = tuple(
    instance_type(f"{family}-{cpu}x", cpu=str(cpu), memory=f"{cpu * ratio}Gi", price=cpu * price)
    for family, ratio, price in (("c", 2, 0.043), ("m", 4, 0.05), ("r", 8, 0.063))
    for cpu in (2, 4, 8, 16)
)


OPTIMAL = PlacementOptions(optimal=True)
ENOUGH_NODES = 25
CHUNK_SIZES = [
    ("100m", "256Mi"),
    ("250m", "1Gi"),
    ("300m", "512Mi"),
    ("450m", "2Gi"),
    ("700m", "3Gi"),
    ("700m", "700Mi"),
]


@st.composite
def buffers_and_requests(draw: st.DrawFn) -> tuple[Demand, ...]:
    """Buffers, and requests that are all or nothing. The bound splits nodes and chunks, so it means something where nodes are
    several and chunks are small beside them."""
    demands = []
    for number, sizes in enumerate(draw(st.permutations(CHUNK_SIZES))[: draw(st.integers(3, len(CHUNK_SIZES)))]):
        made = demand(f"demand-{number}", count=draw(st.integers(150, 400)), pod_shape=shape(*sizes))
        demands.append(replace(made, whole=draw(st.booleans())))
    return tuple(demands)


@settings(max_examples=4, deadline=None)
@given(demands=buffers_and_requests())
def test_buffers_and_atomic_requests_cost_little_more_than_the_least_possible(demands: tuple[Demand, ...]) -> None:
    placement = place_in_mode(Problem(ClusterView(), (node_pool(),), SMALL_TYPES, demands, options=OPTIMAL))

    assume(len(placement.planned) >= ENOUGH_NODES)
    (said,) = (item for item in placement.assumptions if item.startswith("placement.mode optimal"))
    gap = re.search(r"at most ([0-9.]+)% over the least possible", said)
    assert said.endswith("the least possible") if gap is None else float(gap[1]) <= 5.0, said
    assert not placement.unplaced


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nodes_are_filled_as_full_as_can_be_in_the_order_that_is_given(data: st.DataObject) -> None:
    nodes, items, resources = (data.draw(st.integers(1, 5)) for _ in range(3))
    lots = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    order = np.array([lots.permutation(items) for _ in range(nodes)], dtype=np.int64)
    admitted = lots.random((nodes, items)) < 0.8
    requests = lots.integers(0, 5, (items, resources))
    requests[:, 0] += 1  # every pod takes a place of a node
    capacity = lots.integers(-2, 30, (nodes, resources))
    most = lots.integers(1, 6, items)
    conflicts = lots.random((items, items)) < 0.2
    conflicts |= conflicts.T

    compiled, plain = (
        fill(order, admitted.copy(), requests, capacity.copy(), most, conflicts)
        for fill in (greedy_fill(), fill_in_order)
    )

    assert compiled.tolist() == plain.tolist()
    for node in range(nodes):
        held = np.zeros(items, dtype=np.int64)
        for item in order[node].tolist():
            kept_off = not admitted[node, item] or any(held[other] and conflicts[other, item] for other in range(items))
            room = capacity[node] - held @ requests
            fits = [int(room[at] // requests[item, at]) for at in range(resources) if requests[item, at]]
            held[item] = 0 if kept_off else max(0, min([int(most[item]), *fits]))
        assert plain[node].tolist() == held.tolist()
