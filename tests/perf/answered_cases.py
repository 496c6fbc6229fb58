"""Placements that are recorded of tests/cases: the pods and overlays there. Used by answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reconciler.placement.problem import PlacementOptions
from tests.perf.answer import Answer, Questions, of_placement
from tests.perf.answered_worlds import fast, optimal
from tests.unit.placement import placement_cases
from tests.unit.placement.offers import test_overlay_conflicts
from tests.unit.placement.worlds import World

Case = Mapping[str, Any]


def pods() -> Questions:
    """placement.yaml with placement_catalogs.yaml."""
    for case in placement_cases.cases():
        world = partial(_world, case)
        yield case.name, partial(fast, world)
        yield f"{case.name} optimal", partial(optimal, world)


def overlays() -> Questions:
    for case in test_overlay_conflicts.cases():
        for kind in test_overlay_conflicts.types_of(case):
            yield f"{case['name']}/{kind.name}", partial(_of_overlays, case, kind.name)


def _world(case: placement_cases.Case) -> World:
    options = PlacementOptions(include_pending=True)
    return World(case.view, case.node_pools, case.instance_types, case.demands, options=options)


def _of_overlays(case: Case, instance_type: str) -> Answer:
    return of_placement(test_overlay_conflicts.placed(case, instance_type))
