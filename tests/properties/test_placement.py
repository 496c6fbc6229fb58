"""What holds for every placement, whatever the cluster, the pools and the demands are."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.placement.worlds import World, carried_out, worlds


@settings(max_examples=20, deadline=None)
@given(world=worlds(), seed=st.integers(0, 2**16))
def test_does_not_depend_on_the_order_of_what_it_is_given(world: World, seed: int) -> None:
    lots = random.Random(seed)
    view = replace(
        world.view,
        nodes=tuple(lots.sample(world.view.nodes, len(world.view.nodes))),
        pods=tuple(lots.sample(world.view.pods, len(world.view.pods))),
    )
    shuffled = World(
        view,
        tuple(lots.sample(world.node_pools, len(world.node_pools))),
        tuple(lots.sample(world.instance_types, len(world.instance_types))),
        tuple(lots.sample(world.demands, len(world.demands))),
    )

    assert shuffled.placed() == world.placed()


@settings(max_examples=30, deadline=None)
@given(world=worlds())
def test_placing_again_over_what_came_of_it_changes_nothing(world: World) -> None:
    # Pending pods and demands that open no nodes may well use a node that came for another demand.
    world = replace(world, demands=tuple(demand for demand in world.demands if demand.opens_nodes))
    first = world.placed()
    after = carried_out(world, first)

    second = after.placed()

    assert second.planned == ()
    assert second.unplaced == first.unplaced or sum(item.count for item in second.unplaced) <= sum(
        item.count for item in first.unplaced
    )
    assert after.broken_rules(second) == ()
    assert carried_out(after, second).placed().occupied == second.occupied
