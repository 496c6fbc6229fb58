"""What one placement remembers for the next changes no answer, whatever came, went or stayed in between."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.placement import Placement
from reconciler.placement.memory import Memory
from reconciler.placement.place import PlacementOptions, place
from tests.unit.placement.worlds import World, carried_out, worlds


def placed(world: World, memory: Memory | None, *, include_pending: bool = False) -> Placement:
    return place(
        world.view,
        node_pools=world.node_pools,
        instance_types=world.instance_types,
        demands=world.demands,
        options=PlacementOptions(include_pending=include_pending),
        memory=memory,
    )


@settings(max_examples=150, deadline=None)
@given(world=worlds(), other=worlds(), gone=st.integers(0, 3))
def test_a_pass_with_a_memory_answers_as_one_without(world: World, other: World, gone: int) -> None:
    memory = Memory()
    fewer_pods = replace(world, view=replace(world.view, pods=world.view.pods[gone:]))
    other_demands = replace(world, demands=world.demands[:-1])
    carried = carried_out(world, placed(world, None))

    for item in (world, fewer_pods, world, other_demands, carried, other, world):
        assert placed(item, memory) == placed(item, None)
    assert placed(world, memory, include_pending=True) == placed(world, None, include_pending=True)


@settings(max_examples=30, deadline=None)
@given(world=worlds())
def test_nothing_is_worked_out_again_when_nothing_changed(world: World) -> None:
    memory = Memory()
    first = placed(world, memory)

    assert placed(replace(world, view=replace(world.view, pods=(*world.view.pods,))), memory) is first
