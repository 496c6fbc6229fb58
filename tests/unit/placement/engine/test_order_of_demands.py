"""Who gets the room, where it is too little for all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION
from reconciler.model.placement import Holding, words_of_holdings
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node, node_pool, shape

SMALL = instance_type("small", cpu="2", memory="4Gi", price=0.1)
ONE_FITS = shape("1500m", "256Mi")
YOUNG = replace(demand("young", count=1, pod_shape=ONE_FITS), created="2026-11-20T08:00:00Z")
OLD = replace(demand("zz-old", count=1, pod_shape=ONE_FITS), created="2025-11-20T08:00:00Z")
REQUEST = replace(YOUNG, ref=ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (OLD, YOUNG),
        (replace(YOUNG, declared_priority=1), OLD),
        (replace(YOUNG, priority=OLD.priority + 1), replace(OLD, declared_priority=9)),
        (REQUEST, OLD),
        (replace(YOUNG, booked=True), replace(OLD, priority=1000)),
    ],
)
def test_the_limit_of_a_pool_is_used_up_in_order(first: Demand, second: Demand) -> None:
    for demands in ((first, second), (second, first)):
        problem = Problem(ClusterView(), (node_pool(limits={"nodes": "1"}),), (SMALL,), demands)
        assert [item.demand for item in place(problem).unplaced] == [second.ref]


def held_for(of: Demand) -> ClusterView:
    holds = ((HELD_ANNOTATION, "true"), (HOLDS_ANNOTATION, words_of_holdings((Holding(of.ref, 0, 1),))))
    return ClusterView(nodes=(replace(node("there", cpu="2"), annotations=holds),))


def test_room_that_is_held_goes_to_those_of_a_higher_priority() -> None:
    weighty = replace(YOUNG, declared_priority=1)
    placement = place(Problem(held_for(OLD), demands=(OLD, weighty)))
    assert [item.demand for item in placement.unplaced] == [OLD.ref]


def test_nobody_moves_for_another_that_is_only_older() -> None:
    placement = place(Problem(held_for(YOUNG), demands=(OLD, YOUNG)))
    assert [item.demand for item in placement.unplaced] == [OLD.ref]
