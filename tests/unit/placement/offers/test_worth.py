"""What room on new nodes is worth, and that nodes are made larger for chunks to come."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.view import ClusterView
from reconciler.placement.memory import Memory
from reconciler.placement.offers.cheapest_sizes import dual_of
from reconciler.placement.place import solve
from tests.builders import demand, instance_type, node_pool, shape
from tests.unit.placement.worlds import World

TYPES = (
    instance_type("small", cpu="1100m", memory="8Gi", price=0.1),
    instance_type("medium", cpu="2100m", memory="16Gi", price=0.21),
    instance_type("large", cpu="4100m", memory="32Gi", price=0.3),
)
amounts = st.integers(0, 50)


def sizes(demands: int) -> list[str]:
    """The types of planned nodes for so many demands of one chunk, no two of which ask for the same."""
    wanted = [demand(f"of-{number}", count=1, pod_shape=shape(f"{900 + number}m")) for number in range(demands)]
    state = solve(World(ClusterView(), (node_pool(),), TYPES, wanted), Memory()).state
    types = state.offers[0].offerings.types
    return sorted(types[number].name for number in state.planned.type[: state.planned.count].tolist())


def test_nodes_grow_where_the_room_that_is_added_costs_little_more_than_it_is_worth() -> None:
    """A small node for each costs 0.1; to make one large costs 0.2, for three times the room."""
    assert sizes(16) == ["large"] * 4


def test_room_that_nobody_came_to_is_not_bought() -> None:
    assert sizes(18) == ["large"] * 4 + ["medium"]


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
