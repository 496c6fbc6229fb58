"""What holds for every placement, whatever the cluster, the pools and the demands are."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.placement.worlds import World, worlds


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
