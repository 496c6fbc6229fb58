"""NodePools with limits: the same placement as without them while they are far, and never more than they allow when they are near."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.demand import ChunkGroup
from reconciler.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, NodePool
from reconciler.model.placement import Placement
from reconciler.model.pods import PodAffinityTerm
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.loops import kernel
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node_pool, shape
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool

TYPES = synthetic_instance_types()
DEMANDS = demands_of(decoded(pod_manifests(100)))
FAR = {"cpu": "100000", "memory": "1Pi", "nodes": "10000"}


def limited(**limits: str) -> NodePool:
    return replace(pool(), limits=Resources.parse(limits).amounts)


def placed(node_pool: NodePool) -> Placement:
    """In one order: others are tried for fewer chunks, each of them again by the same loops."""
    options = PlacementOptions(include_pending=True, instance_types=1)
    problem = Problem(ClusterView(), (node_pool,), TYPES, DEMANDS, options=options)
    with patch("reconciler.placement.engine.best.MOST_ORDERED", 0):
        return place(problem)


@pytest.mark.parametrize("compiled_from", [0, 10_000])
def test_limits_that_are_far_change_nothing(compiled_from: int) -> None:
    with patch("reconciler.placement.place.WORTH_COMPILING", compiled_from):
        with_limits, without = placed(limited(**FAR)), placed(pool())
    assert with_limits == without


@pytest.mark.parametrize("limits", [{"cpu": "20"}, {"cpu": "20", "memory": "66Gi"}, {"nodes": "7"}, {"memory": "30Gi"}])
def test_limits_that_are_near_are_kept_whichever_loops_find_the_placement(limits: dict[str, str]) -> None:
    node_pool = limited(**limits)
    with patch("reconciler.placement.place.WORTH_COMPILING", 0):
        compiled = placed(node_pool)
    with patch("reconciler.placement.place.WORTH_COMPILING", 10_000):
        in_numpy = placed(node_pool)

    assert compiled == in_numpy
    assert compiled.unplaced
    found = violations(Problem(ClusterView(), (node_pool,), TYPES, DEMANDS), compiled)
    assert found == ()


def test_a_new_node_beside_limited_pools_is_charged_to_none() -> None:
    """What was undone left its mark on the row where the loops make the next node of a pool without limits."""
    kept_apart = (PodAffinityTerm(HOSTNAME_LABEL, LabelSelector((("app", "db"),))),)
    database = replace(shape("6", "1Gi", labels={"app": "db"}), pod_anti_affinity=kept_apart)
    small = shape("500m", "1Gi", node_selector={INSTANCE_TYPE_LABEL: "small"})
    in_vain = [ChunkGroup(item, 1) for item in (database, small, shape("1000", "1Gi"))]
    demands = (
        replace(demand("a"), groups=tuple(in_vain), whole=True),
        demand("b", pod_shape=database, count=1),
    )
    pools = (node_pool("free"), node_pool("limited", limits={"cpu": "4"}))
    types = (instance_type("small", cpu="2", price=0.1), instance_type("large", cpu="8", price=0.4))
    with (
        patch("reconciler.placement.place.WORTH_COMPILING", 0),
        patch("reconciler.placement.place.compiled", kernel.plain),
    ):
        placement = place(Problem(ClusterView(), pools, types, demands))

    assert [node.node_pool for node in placement.planned] == ["free"]
