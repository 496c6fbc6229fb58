"""Pods that name a scheduler of their own: planned like all others, as Karpenter does it, and said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.demand.pods import pending_demands
from reconciler.model.placement import Placement
from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node, node_pool, pod, shape

ELSEWHERE = replace(shape("1"), scheduler_name="volcano")


def planned(*pods: Pod, include_pending: bool = True) -> Placement:
    view = ClusterView(nodes=(node("a", cpu="1"),), pods=pods)
    return place(
        Problem(
            view,
            (node_pool(),),
            (instance_type(),),
            pending_demands(view, include_pending=include_pending),
            options=PlacementOptions(include_pending=include_pending),
        )
    )


def test_a_node_is_planned_for_pods_of_another_scheduler() -> None:
    placement = planned(pod("a", pod_shape=ELSEWHERE), pod("b", pod_shape=ELSEWHERE))
    assert sum(holding.count for item in placement.planned for holding in item.holdings) == 1
    assert placement.unplaced == ()
    (sentence,) = placement.assumptions
    assert sentence == (
        "2 pods that wait for scheduler volcano are placed as kube-scheduler would do it; Karpenter makes nodes only once that "
        "scheduler has set Unschedulable"
    )


def test_they_take_room_that_is_there_though_no_node_is_planned_for_them() -> None:
    placement = planned(pod("a", pod_shape=ELSEWHERE), include_pending=False)
    assert [item.node for item in placement.occupied] == ["a"]
    assert placement.assumptions == ("1 pod that waits for scheduler volcano is placed as kube-scheduler would do it",)


@pytest.mark.parametrize("include_pending", [False, True])
def test_nothing_is_said_of_pods_of_kube_scheduler(*, include_pending: bool) -> None:
    assert planned(pod("a", pod_shape=shape("1")), include_pending=include_pending).assumptions == ()
