"""Firm placements of generated repositories: no rule is broken, fewer pods wait, and the next pass changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.placement import Placement
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.placement.surge.firm import Firm, Firmer, SurgeMode
from tests.properties.surge_worlds import surge_world
from tests.unit.placement.worlds import World, carried_out

SEEDS = [1, 2, 9, 13, 16, 47]
"""Among them one that needs nothing, one that needs the taint alone, and some that need spare room."""


def names_of(placement: Placement) -> list[str]:
    return [f"planned-{number}" for number in range(len(placement.planned))]


def problem_of(world: World) -> Problem:
    return Problem(world.view, node_pools=world.node_pools, instance_types=world.instance_types, demands=world.demands)


def firm(world: World) -> Firm:
    problem = problem_of(world)
    return Firmer(SurgeMode.ALL, place, names_of).firm(problem, place(problem))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_firm_placement_breaks_no_rule_and_leaves_no_chunk_out(seed: int) -> None:
    world = surge_world(seed)
    found = firm(world)
    asked = {item.ref for item in world.demands}
    assert violations(found.problem, found.placement) == ()
    assert not [item for item in found.placement.unplaced if item.demand in asked]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_pass_changes_nothing(seed: int) -> None:
    """Once the planned nodes have been asked for; spare room is read from what they hold."""
    world = surge_world(seed)
    first = firm(world)
    after = carried_out(world, first.placement)
    second = firm(after)
    assert second.placement.planned == ()
    assert second.spare == first.spare
    again = firm(replace(after, view=carried_out(after, second.placement).view))
    assert (again.placement, again.spare, again.scarce) == (second.placement, second.spare, second.scarce)
