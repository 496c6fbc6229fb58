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


@settings(max_examples=15, deadline=None)
@given(world=worlds())
def test_the_compiled_loops_may_take_over_half_way(world: World) -> None:
    with patch("reconciler.placement.engine.state.CHUNKS_WORTH_COMPILING", 0):
        taken_over = placed_with(kernel.plain(), world)
    assert taken_over == placed_with(kernel.plain(), world)


def test_numba_is_there() -> None:
    assert kernel.compiled() is not kernel.plain(), "numba is a dependency: its wheel should be there"
