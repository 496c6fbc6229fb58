"""The loops compiled and as they are written, batches in one walk and each by itself: whichever it is, the placement is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.batches import Batch
from reconciler.placement.engine.walk import BatchWalk
from reconciler.placement.loops import kernel
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool, priced_by_zone
from tests.unit.placement.worlds import World, placed_with, worlds


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
