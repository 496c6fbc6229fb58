"""The loops compiled and as they are written: whichever run, the placement is the same."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings

from reconciler.model.placement import Placement
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from tests.unit.placement.worlds import World, worlds


def placed_with(loops: Kernel, world: World) -> Placement:
    with (
        patch("reconciler.placement.place.WORTH_COMPILING", 0),
        patch("reconciler.placement.place.compiled", lambda: loops),
    ):
        return world.under(include_pending=True).placed()


@settings(max_examples=50, deadline=None)
@given(world=worlds())
def test_the_loops_as_written_and_compiled_agree(world: World) -> None:
    looped = placed_with(kernel.plain(), world)
    assert looped == placed_with(kernel.compiled(), world)
    # An integer of numpy's own equals ours, but fails later, where only ours will do.
    of_each = [*(item.holdings for item in looped.occupied), *(item.holdings for item in looped.planned)]
    held = [holding.count for holdings in of_each for holding in holdings]
    assert all(type(count) is int for count in held)


@settings(max_examples=30, deadline=None)
@given(world=worlds())
def test_the_compiled_loops_may_take_over_half_way(world: World) -> None:
    with patch("reconciler.placement.engine.state.CHUNKS_WORTH_COMPILING", 0):
        taken_over = placed_with(kernel.plain(), world)
    assert taken_over == placed_with(kernel.plain(), world)


def test_numba_is_there() -> None:
    assert kernel.compiled() is not kernel.plain(), "numba is a dependency: its wheel should be there"
