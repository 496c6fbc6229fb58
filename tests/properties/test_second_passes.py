"""What a pass leaves without a place, the next one does too, once the plan is carried out: nobody finds room that was there before,
nobody leaves, and no node is made. Whichever loops look for it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from reconciler.model.nodes import CAPACITY_TYPE_LABEL
from reconciler.model.placement import Placement
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from tests.properties.crowded_worlds import crowded_worlds
from tests.unit.placement.worlds import World, carried_out, placed_with

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "15"))
"""3,000 take four minutes for each of the loops."""
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("loops", [kernel.plain(), kernel.compiled()], ids=["plain", "compiled"])
@settings(UNHURRIED, max_examples=EXAMPLES)
@given(world=crowded_worlds())
def test_a_second_pass_finds_a_place_for_nobody_else(loops: Kernel, world: World) -> None:
    first = placed_with(loops, world)
    after = carried_out(world, first)
    second = placed_with(loops, after)

    assert world.broken_rules(first) == ()
    assert after.broken_rules(second) == ()
    assert second.planned == ()
    # Of a planned node that may be sold as either, a rule over capacity types sees both until the node is there.
    assert missing(second) == missing(first) or (
        spreads_over_capacity_types(world) and missing(second) < missing(first)
    )


@settings(UNHURRIED, max_examples=max(EXAMPLES // 3, 10))
@given(world=crowded_worlds())
def test_the_placement_is_the_same_whichever_loops_find_it(world: World) -> None:
    assert placed_with(kernel.compiled(), world) == placed_with(kernel.plain(), world)


def spreads_over_capacity_types(world: World) -> bool:
    shapes = (group.shape for demand in world.demands for group in demand.groups)
    return any(rule.topology_key == CAPACITY_TYPE_LABEL for shape in shapes for rule in shape.topology_spread)


def missing(placement: Placement) -> int:
    return sum(item.count for item in placement.unplaced)
