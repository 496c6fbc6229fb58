"""What holds for every placement, whatever the cluster, the pools and the demands are, and whichever loops find it.

Plain worlds; wide ones, with the rarer rules combined as nobody would think of; and crowded ones, whose NodePools allow few nodes.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, InstanceType, NodePool
from reconciler.model.placement import Cause, Placement
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator
from reconciler.model.view import ClusterView
from reconciler.placement.batches import Batch
from reconciler.placement.cache import Cache
from reconciler.placement.engine.walk import BatchWalk
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool, priced_by_zone
from tests.properties.crowded_worlds import crowded_worlds
from tests.properties.wide_worlds import wide_worlds
from tests.unit.placement.worlds import World, carried_out, placed_with, worlds

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "40"))
"""Of wide worlds; 10,000 take some minutes."""
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


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


# What a pass leaves without a place, the next one does too, once the plan is carried out: nobody finds room that was there before,
# nobody leaves, and no node is made.


@pytest.mark.parametrize("loops", [kernel.plain(), kernel.compiled()], ids=["plain", "compiled"])
@settings(UNHURRIED, max_examples=max(EXAMPLES // 3, 15))
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


def spreads_over_capacity_types(world: World) -> bool:
    shapes = (group.shape for demand in world.demands for group in demand.groups)
    return any(rule.topology_key == CAPACITY_TYPE_LABEL for shape in shapes for rule in shape.topology_spread)


def missing(placement: Placement) -> int:
    return sum(item.count for item in placement.unplaced)


# The loops compiled and as they are written, batches in one walk and each by itself: the placement is the same.


@settings(max_examples=15, deadline=None)
@given(world=worlds())
def test_the_compiled_loops_may_take_over_half_way(world: World) -> None:
    waiting = world.under(include_pending=True)
    with patch("reconciler.placement.engine.state.CHUNKS_WORTH_COMPILING", 0):
        taken_over = waiting.placed()
    assert taken_over == waiting.placed()


def by_itself(_: BatchWalk, batches: Sequence[Batch], wanted: Sequence[int]) -> Iterator[int]:
    del wanted
    yield from range(len(batches))


@settings(max_examples=60, deadline=None)
@given(world=worlds())
def test_batches_walked_together_are_placed_as_each_by_itself(world: World) -> None:
    waiting = world.under(include_pending=True)
    together = placed_with(kernel.plain(), waiting)
    with patch.object(BatchWalk, "over", by_itself):
        assert placed_with(kernel.plain(), waiting) == together


LIMITED = replace(pool(), limits=Resources.parse({"cpu": "400", "memory": "1Ti"}).amounts)
TYPES = synthetic_instance_types()


@pytest.mark.parametrize("types", [TYPES, priced_by_zone(TYPES)], ids=["prices alike", "prices by zone"])
@pytest.mark.parametrize(
    "pools",
    [(pool(),), (LIMITED,), (replace(pool(), weight=10), replace(pool(), name="light"))],
    ids=["one", "limited", "two"],
)
def test_pods_under_every_kind_of_rule_are_too(pools: tuple[NodePool, ...], types: tuple[InstanceType, ...]) -> None:
    demands = demands_of(decoded(pod_manifests(150)))
    problem = Problem(ClusterView(), pools, types, demands, options=PlacementOptions(include_pending=True))
    with patch("reconciler.placement.place.WORTH_COMPILING", 0):
        together = place(problem)
        with patch.object(BatchWalk, "over", by_itself):
            assert place(problem) == together


def test_numba_is_there() -> None:
    assert kernel.compiled() is not kernel.plain(), "numba is a dependency: its wheel should be there"


# What one placement remembers for the next changes no answer, whatever came, went or stayed in between.


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
