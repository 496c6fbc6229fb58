"""What one placement remembers for the next changes no answer, whatever came, went or stayed in between."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.placement.cache import Cache
from tests.unit.placement.worlds import World, carried_out, worlds


@settings(max_examples=8, deadline=None)
@given(world=worlds(), other=worlds(), gone=st.integers(0, 3), answers=st.integers(1, 4))
def test_a_pass_with_a_memory_answers_as_one_without(world: World, other: World, gone: int, answers: int) -> None:
    memory = Cache(answers)
    fewer_pods = replace(world, view=replace(world.view, pods=world.view.pods[gone:]))
    other_demands = replace(world, demands=world.demands[:-1])
    carried = carried_out(world, world.placed())

    for item in (world, fewer_pods, world, other_demands, carried, other, world):
        assert item.placed(memory) == item.placed()
    with_pending = world.under(include_pending=True)
    assert with_pending.placed(memory) == with_pending.placed()


@settings(max_examples=20, deadline=None)
@given(world=worlds())
def test_nothing_is_worked_out_again_when_nothing_changed(world: World) -> None:
    memory = Cache(answers=2)
    first = world.placed(memory)
    trial = world.under(include_pending=True).placed(memory)

    assert world.under(include_pending=True).placed(memory) is trial
    assert replace(world, view=replace(world.view, pods=(*world.view.pods,))).placed(memory) is first
