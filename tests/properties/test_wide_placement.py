"""Placements under the rarer rules, combined as nobody would think of: the independent checker finds nothing wrong with them, and
they are the same whichever loops find them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from hypothesis import HealthCheck, given, settings

from reconciler.model.placement import Cause, Placement
from reconciler.model.requirements import Operator
from reconciler.placement.loops import kernel
from tests.properties.wide_worlds import wide_worlds
from tests.unit.placement.worlds import World, carried_out, placed_with

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "40"))
"""10,000 take some minutes."""
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@settings(UNHURRIED, max_examples=EXAMPLES)
@given(world=wide_worlds())
def test_breaks_no_rule(world: World) -> None:
    placement = world.placed()

    assert world.broken_rules(placement) == ()


@settings(UNHURRIED, max_examples=max(EXAMPLES // 10, 12))
@given(world=wide_worlds())
def test_breaks_no_rule_when_it_looks_for_something_cheaper(world: World) -> None:
    fast, optimal = world.placed(), world.under(optimal=True).placed()

    assert world.broken_rules(optimal) == ()
    assert price(optimal) <= price(fast) + 1e-9
    assert (optimal.occupied, optimal.unplaced) == (fast.occupied, fast.unplaced)


@settings(UNHURRIED, max_examples=max(EXAMPLES // 4, 15))
@given(world=wide_worlds())
def test_is_the_same_with_all_loops_and_each_time(world: World) -> None:
    looped = placed_with(kernel.plain(), world)

    assert looped == placed_with(kernel.compiled(), world)
    assert looped == world.placed()
    # An integer of numpy's own equals ours, but fails later, where only ours will do.
    assert {type(value) for value in plain_values(looped)} <= {int, float, bool, str, type(None), Operator, Cause}


@settings(UNHURRIED, max_examples=max(EXAMPLES // 4, 15))
@given(world=wide_worlds())
def test_placing_again_over_what_came_of_it_breaks_no_rule(world: World) -> None:
    # Pending pods and demands that open no nodes may well use a node that came for another demand.
    steady = replace(
        world,
        demands=tuple(item for item in world.demands if item.opens_nodes and not item.is_pending_pod),
        options=replace(world.options, leaving=frozenset()),
    )
    first = steady.placed()
    after = carried_out(steady, first)

    second = after.placed()

    assert after.broken_rules(second) == ()
    assert second.planned == ()
    assert len(second.unplaced) <= len(first.unplaced)


def price(placement: Placement) -> float:
    return sum(node.price for node in placement.planned)


def plain_values(value: object) -> Iterator[object]:
    """All that a value holds at last."""
    if is_dataclass(value):
        for item in fields(value):
            yield from plain_values(getattr(value, item.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from plain_values(part)
    else:
        yield value
