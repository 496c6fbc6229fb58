"""Placements of pods with volumes and devices of every sort: no rule is broken, and a pod that waits would break one everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from reconciler.model.placement import Holding, OccupiedBin, Placement, Unplaced
from tests.properties.attaching_worlds import attaching_worlds
from tests.properties.wide_volumes import waits_for_the_first, with_own_volumes
from tests.unit.placement.worlds import World

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "80"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=attaching_worlds())
def test_breaks_no_rule(world: World) -> None:
    placement = world.placed()

    assert world.broken_rules(placement) == ()


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=attaching_worlds())
def test_a_pod_that_waits_would_break_a_rule_on_every_node(world: World) -> None:
    """As if each pod had volumes of its own, which is how placement counts them."""
    placement = world.placed()
    waiting = [
        item
        for item in placement.unplaced
        if item.demand.kind == "Pod" and not waits_for_the_first(item) and not _is_not_judged(item)
    ]
    storage, demands = with_own_volumes(world.view.storage, world.demands)
    apart = replace(world, view=replace(world.view, storage=storage), demands=demands)

    assert [
        (str(item.demand), name)
        for item in waiting
        for name, more in _with_one_more(world, placement, item)
        if apart.broken_rules(more) == ()
    ] == []


def _is_not_judged(item: Unplaced) -> bool:
    return any("not judged" in reason.example for reason in item.reasons)


def _with_one_more(world: World, placement: Placement, item: Unplaced) -> Iterable[tuple[str, Placement]]:
    """By the node that the pod is put on."""
    left = tuple(other for other in placement.unplaced if other != item)
    held = {occupied.node: occupied.holdings for occupied in placement.occupied if occupied.node is not None}
    for node in world.view.nodes:
        more = held | {node.name: (*held.get(node.name, ()), Holding(item.demand, item.group, 1))}
        occupied = tuple(OccupiedBin(name, None, holdings) for name, holdings in more.items())
        yield node.name, replace(placement, occupied=occupied, unplaced=left)
