"""Pods that kube-scheduler has chosen a node for and makes room for there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.demand.pods import pending_demands
from reconciler.model.nodes import HOSTNAME_LABEL, Node, NodeClaim
from reconciler.model.placement import Placement
from reconciler.model.pods import Pod, PodAffinityTerm
from reconciler.model.requirements import LabelSelector, Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.nodes.machines import with_nominated
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, pod, shape

TAINT = Taint("team", "red", "NoSchedule")
CHOSEN = replace(pod("chosen", pod_shape=shape("3")), nominated_node="a")
VICTIM = replace(pod("victim", node="a", pod_shape=shape("3")), deleting=True)


def planned(*pods: Pod, nodes: tuple[Node, ...] = (node("a"),), chunks: int = 0) -> Placement:
    view = with_nominated(ClusterView(nodes=nodes, pods=pods))
    buffers = (demand(count=chunks, pod_shape=shape("1")),) if chunks else ()
    return place(
        Problem(
            view,
            (node_pool(),),
            (instance_type(cpu="8"),),
            (*pending_demands(view, include_pending=True), *buffers),
            options=PlacementOptions(include_pending=True),
        )
    )


def test_no_node_is_planned_for_it_while_those_evicted_for_it_end() -> None:
    placement = planned(CHOSEN, VICTIM)

    assert placement.planned == ()
    assert placement.unplaced == ()
    assert placement.occupied == ()


def test_its_room_is_taken_once_they_have_ended() -> None:
    """Of 4 CPUs it takes 3: one chunk fits beside it, and not four."""
    placement = planned(CHOSEN, chunks=4)

    assert [sum(holding.count for holding in item.holdings) for item in placement.occupied] == [1]
    assert sum(holding.count for item in placement.planned for holding in item.holdings) == 3


def test_it_counts_on_its_node_for_rules_between_pods() -> None:
    away = (PodAffinityTerm(HOSTNAME_LABEL, LabelSelector((("app", "web"),))),)
    alone = replace(shape("1", labels={"app": "web"}), pod_anti_affinity=away)
    first, second = (pod(name, pod_shape=alone) for name in ("first", "second"))

    placement = planned(replace(first, nominated_node="a"), second, nodes=(node("a"), node("b")))

    assert [item.node for item in placement.occupied] == ["b"]


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (node("a", ready=False),),
        (replace(node("a"), unschedulable=True),),
        (replace(node("a"), deleting=True),),
        (node("a", taints=(TAINT,)),),
    ],
    ids=["gone", "not ready", "cordoned", "being deleted", "with a taint"],
)
def test_one_whose_node_takes_it_no_more_waits_like_any_other(nodes: tuple[Node, ...]) -> None:
    placement = planned(CHOSEN, nodes=nodes)

    assert [holding.demand.name for item in placement.planned for holding in item.holdings] == ["chosen"]


def test_a_node_whose_claim_is_being_deleted_takes_it_no_more() -> None:
    claim = NodeClaim("claim", node_name="a", deleting=True)
    view = ClusterView(nodes=(node("a"),), node_claims=(claim,), pods=(CHOSEN,))

    assert with_nominated(view).pods == (CHOSEN,)


def test_a_taint_that_it_tolerates_is_no_matter() -> None:
    tolerant = replace(CHOSEN, shape=replace(CHOSEN.shape, tolerations=(Toleration("team", "Exists"),)))

    assert planned(tolerant, nodes=(node("a", taints=(TAINT,)),)).planned == ()


def test_one_that_is_being_deleted_takes_no_room() -> None:
    placement = planned(replace(CHOSEN, deleting=True), chunks=4)

    assert [sum(holding.count for holding in item.holdings) for item in placement.occupied] == [4]


def test_a_cluster_without_any_is_the_same_object() -> None:
    view = ClusterView(nodes=(node("a"),), pods=(pod("plain"), VICTIM))

    assert with_nominated(view) is view


def test_those_that_wait_for_their_node_and_those_that_lost_it_are_told_of() -> None:
    lost = replace(pod("lost"), nominated_node="gone")

    view = with_nominated(ClusterView(nodes=(node("a"),), pods=(CHOSEN, VICTIM, lost)))

    assert [(item.name, item.node_name) for item in view.nominated] == [("chosen", "a"), ("lost", None)]
