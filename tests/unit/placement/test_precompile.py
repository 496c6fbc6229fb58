"""The loops that an image is built with are those that every placement then uses."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from reconciler.model.placement import Placement
from reconciler.model.view import ClusterView
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.place import place
from reconciler.placement.precompile import compile_ahead, schedule_ahead
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.placement.scheduler.model import PodKind, SchedulerModel
from reconciler.placement.scheduler.walk import compiled_walk
from reconciler.placement.surge.rehearsal import Rehearsal
from tests.builders import node, pod
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool
from tests.properties.surge_worlds import surge_world
from tests.properties.test_surge import names_of
from tests.unit.placement.worlds import catalogue

IMPOSSIBLE = "CapacityBuffer/default/impossible"


def test_compiling_ahead_runs_every_loop() -> None:
    used = set()

    def noting(name: str) -> Any:
        loop = getattr(kernel.plain(), name)

        def noted(*arguments: Any) -> Any:
            used.add(name)
            return loop(*arguments)

        return noted

    loops = Kernel(**{name: noting(name) for name in Kernel.__slots__})
    few = 40  # as they are written, the loops are slow
    with (
        patch("reconciler.placement.place.compiled", lambda: loops),
        patch("reconciler.placement.place.WORTH_COMPILING", few),
        patch("reconciler.placement.precompile.WORTH_COMPILING", few),
    ):
        placements = compile_ahead()
    assert used == set(Kernel.__slots__)
    assert {str(item.demand) for placement in placements for item in placement.unplaced} == {IMPOSSIBLE}


def test_each_loop_is_compiled_for_one_kind_of_arguments() -> None:
    """Otherwise what was compiled ahead would not be what a daemon needs."""
    compile_ahead()
    assert placement_of_a_mix().planned
    loops = kernel.compiled()
    assert loops is not kernel.plain(), "numba is a dependency: its wheel should be there"
    assert {name: len(getattr(loops, name).signatures) for name in Kernel.__slots__} == dict.fromkeys(
        Kernel.__slots__, 1
    )


def test_the_schedulers_loops_are_compiled_for_one_kind_of_arguments() -> None:
    assert -1 not in schedule_ahead()
    world = [node("a"), node("b")]
    kinds = [PodKind(item.groups[0].shape) for item in demands_of(decoded(pod_manifests(100)))]
    loops = compiled_walk()
    SchedulerModel(world, [pod(node="a")], kinds, {}).schedule(range(len(kinds)))
    problem = surge_world(10)
    placement = place(problem)
    Rehearsal(problem, placement, names_of(placement)).waits()
    used = ("schedule", "take_back", "worsen")
    assert {name: len(getattr(loops, name).signatures) for name in used} == dict.fromkeys(used, 1)


def placement_of_a_mix() -> Placement:
    """Pods under every kind of rule that the loops look at."""
    with patch("reconciler.placement.place.WORTH_COMPILING", 0):
        return place(
            Problem(
                ClusterView(),
                (pool(),),
                catalogue(("zone-a", "zone-b")),
                demands_of(decoded(pod_manifests(100))),
                options=PlacementOptions(include_pending=True),
            )
        )
