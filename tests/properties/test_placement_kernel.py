"""The loops compiled and as they are written: whichever run, the placement is the same."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.placement import Placement
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from tests.unit.placement.worlds import World, worlds


def placed_with(loops: Kernel, world: World, chunks_per_node: int | None) -> Placement:
    with (
        patch("reconciler.placement.place.WORTH_COMPILING", 0),
        patch("reconciler.placement.place.compiled", lambda: loops),
    ):
        return world.under(chunks_per_node=chunks_per_node, include_pending=True).placed()


@settings(max_examples=50, deadline=None)
@given(world=worlds(), most=st.sampled_from([None, 1, 3]))
def test_the_loops_as_written_and_compiled_agree(world: World, most: int | None) -> None:
    looped = placed_with(kernel.plain(), world, most)
    assert looped == placed_with(kernel.compiled(), world, most)
    # An integer of numpy's own equals ours, but fails later, where only ours will do.
    of_each = [*(item.holdings for item in looped.occupied), *(item.holdings for item in looped.planned)]
    held = [holding.count for holdings in of_each for holding in holdings]
    assert all(type(count) is int for count in held)


@settings(max_examples=30, deadline=None)
@given(world=worlds(), most=st.sampled_from([None, 1, 3]))
def test_the_compiled_loops_may_take_over_half_way(world: World, most: int | None) -> None:
    with patch("reconciler.placement.engine.state.CHUNKS_WORTH_COMPILING", 0):
        taken_over = placed_with(kernel.plain(), world, most)
    assert taken_over == placed_with(kernel.plain(), world, most)


def test_numba_is_there() -> None:
    assert kernel.compiled() is not kernel.plain(), "numba is a dependency: its wheel should be there"
