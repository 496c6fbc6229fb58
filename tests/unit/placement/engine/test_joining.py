"""Which planned nodes chunks join before a node is made for them, where nobody looks for a better order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.nodes import INSTANCE_TYPE_LABEL, ZONE_LABEL
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.loops.kernel import plain
from tests.builders import demand, instance_type, node_pool, shape, spread
from tests.unit.placement.worlds import World, placed_with

TYPES = (instance_type("m-4x", cpu="4100m", memory="16Gi", price=0.2),)
WEB = shape("3", labels={"app": "web"})
SPREAD = replace(WEB, topology_spread=(spread(ZONE_LABEL),))


@pytest.fixture(autouse=True)
def in_one_order() -> Iterator[None]:
    with (
        patch("reconciler.placement.engine.best.MOST_ORDERED", 0),
        patch("reconciler.placement.engine.best.MOST_CHUNKS", 0),
    ):
        yield


def placed(counts: Mapping[PodShape, int], limits: Resources | None = None) -> Placement:
    pool = node_pool() if limits is None else replace(node_pool(), limits=limits.amounts)
    demands = [
        demand(f"of-{number}", count=count, pod_shape=item) for number, (item, count) in enumerate(counts.items())
    ]
    return World(ClusterView(), (pool,), TYPES, demands).placed_rightly()


def held(placement: Placement) -> list[list[tuple[str, int]]]:
    return sorted(sorted((item.demand.name, item.count) for item in node.holdings) for node in placement.planned)


def test_chunks_with_a_choice_of_zones_join_nodes_in_all_of_them_before_one_is_made() -> None:
    """Spread counts the small chunks by their label, so that it matters in which zone they are."""
    small = shape("1", labels={"app": "web"})

    assert held(placed({SPREAD: 2, small: 2})) == [[("of-0", 1), ("of-1", 1)], [("of-0", 1), ("of-1", 1)]]


def test_a_chunk_joins_the_fullest_node_that_takes_it() -> None:
    """The first node has room for it too, but then none is left for the large chunk that follows."""
    counts = {shape("2500m"): 1, shape("3500m"): 1, shape("500m"): 1, shape("1500m"): 1}

    assert held(placed(counts)) == [[("of-0", 1), ("of-3", 1)], [("of-1", 1), ("of-2", 1)]]


@pytest.mark.parametrize(("cpu", "near"), [("12", True), ("1000", False)])
def test_near_limits_leave_it_at_the_first_node(cpu: str, near: bool) -> None:  # noqa: FBT001 - a parameter of the test
    counts = {shape("2500m"): 1, shape("3500m"): 1, shape("500m"): 1}

    first = [[("of-0", 1), ("of-2", 1)], [("of-1", 1)]]
    fullest = [[("of-0", 1)], [("of-1", 1), ("of-2", 1)]]
    assert held(placed(counts, Resources.parse({"cpu": cpu}))) == (first if near else fullest)


MANY = tuple(
    instance_type(f"m-{number:02}", cpu="4100m", memory="16Gi", price=0.2 + number / 1000) for number in range(12)
)
MIXED = (
    shape("3", labels={"app": "plain"}),
    SPREAD,
    replace(SPREAD, requests=shape("1").requests),
    shape("2", labels={"app": "web"}),
    replace(shape("3", labels={"app": "other"}), topology_spread=(spread(INSTANCE_TYPE_LABEL, app="other"),)),
)


@given(st.lists(st.tuples(st.integers(0, len(MIXED) - 1), st.integers(1, 7)), min_size=2, max_size=6))
def test_domains_that_come_with_new_nodes_are_counted_by_the_walk_too(asked: list[tuple[int, int]]) -> None:
    """More values of a label than the counters' table has columns for: the walk must see the larger table."""
    demands = [demand(f"of-{place}", count=count, pod_shape=MIXED[which]) for place, (which, count) in enumerate(asked)]
    world = World(ClusterView(), (node_pool(),), MANY, demands)

    assert world.broken_rules(placed_with(plain(), world)) == ()
