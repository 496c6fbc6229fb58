"""NodePools with limits: the same placement as without them while they are far, and never more than they allow when they are near."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from reconciler.manifests.synthetic_instance_types import synthetic_instance_types
from reconciler.model.nodes import NodePool
from reconciler.model.placement import Placement
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import PlacementOptions, place
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool

TYPES = synthetic_instance_types()
DEMANDS = demands_of(decoded(pod_manifests(300)))
FAR = {"cpu": "100000", "memory": "1Pi", "nodes": "10000"}


def limited(**limits: str) -> NodePool:
    return replace(pool(), limits=Resources.parse(limits).amounts)


def placed(node_pool: NodePool) -> Placement:
    options = PlacementOptions(include_pending=True, instance_types=1)
    return place(ClusterView(), node_pools=(node_pool,), instance_types=TYPES, demands=DEMANDS, options=options)


@pytest.mark.parametrize("compiled_from", [0, 10_000])
def test_limits_that_are_far_change_nothing(compiled_from: int) -> None:
    with patch("reconciler.placement.place.WORTH_COMPILING", compiled_from):
        with_limits, without = placed(limited(**FAR)), placed(pool())
    assert with_limits == without


@pytest.mark.parametrize(
    "limits", [{"cpu": "60"}, {"cpu": "60", "memory": "200Gi"}, {"nodes": "20"}, {"memory": "90Gi"}]
)
def test_limits_that_are_near_are_kept_whichever_loops_find_the_placement(limits: dict[str, str]) -> None:
    node_pool = limited(**limits)
    with patch("reconciler.placement.place.WORTH_COMPILING", 0):
        compiled = placed(node_pool)
    with patch("reconciler.placement.place.WORTH_COMPILING", 10_000):
        in_numpy = placed(node_pool)

    assert compiled == in_numpy
    assert compiled.unplaced
    found = violations(
        ClusterView(), node_pools=(node_pool,), instance_types=TYPES, demands=DEMANDS, placement=compiled
    )
    assert found == ()
