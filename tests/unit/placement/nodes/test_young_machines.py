"""A machine whose node has joined before Karpenter registered it: it is one bin, and what its NodeClaim says counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.demand.combine import pending_demands
from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
)
from reconciler.model.placement import Placement
from reconciler.model.pods import NodeSelectorTerm, Pod, PodShape
from reconciler.model.requirements import Operator, Requirement, Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.nodes.existing import with_nominated
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, pod, resources, shape, spread, term, web
from tests.unit.placement.worlds import World, with_hostname

TYPES = (instance_type("small", cpu="2"),)
UNREGISTERED = Taint("karpenter.sh/unregistered", "", "NoExecute")
NODE = replace(
    node("joined", pool=None, cpu="2", taints=(UNREGISTERED,)), labels=(("kubernetes.io/hostname", "joined"),)
)
"""As kubelet makes it: no label that says where it is and what it is."""
CLAIM = NodeClaim(
    name="claim",
    labels=tuple(
        sorted(
            {
                PLACEHOLDER_LABEL: "true",
                NODEPOOL_LABEL: "general",
                INSTANCE_TYPE_LABEL: "small",
                ZONE_LABEL: "zone-a",
            }.items()
        )
    ),
    provider_id=NODE.provider_id,
    allocatable=resources("2", "16Gi", pods="110"),
)
VIEW = ClusterView(nodes=(NODE,), node_claims=(CLAIM,))


def problem(asked: Demand, view: ClusterView = VIEW, *, nodes: str = "100") -> Problem:
    return Problem(view, (node_pool(limits={"nodes": nodes}),), TYPES, (asked,))


def placed(asked: Demand, view: ClusterView = VIEW, *, nodes: str = "100") -> Placement:
    given = problem(asked, view, nodes=nodes)
    placement = place(given)
    assert violations(given, placement) == ()
    return placement


def on_existing(placement: Placement) -> dict[str | None, int]:
    return {item.node: sum(holding.count for holding in item.holdings) for item in placement.occupied}


def test_its_room_is_given_away_once() -> None:
    """Four chunks of 1 CPU do not fit on one machine with 2 CPU."""
    placement = placed(demand(count=4))

    assert on_existing(placement) == {"joined": 2}
    assert sum(holding.count for item in placement.planned for holding in item.holdings) == 2


def test_its_node_claim_says_where_and_what_it_is() -> None:
    wanted = demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-a", INSTANCE_TYPE_LABEL: "small"}))
    assert on_existing(placed(wanted)) == {"joined": 1}
    elsewhere = demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-b"}))
    assert on_existing(placed(elsewhere)) == {}


def tolerant(key: str) -> PodShape:
    return shape(tolerations=(Toleration(key, "Exists"),))


@pytest.mark.parametrize(("asked", "expected"), [(shape(), {}), (tolerant("team"), {"joined": 1})])
def test_the_taints_of_its_node_claim_are_to_come(asked: PodShape, expected: dict[str, int]) -> None:
    view = replace(VIEW, node_claims=(replace(CLAIM, taints=(Taint("team", "a", "NoSchedule"),)),))
    assert on_existing(placed(demand(count=1, pod_shape=asked), view)) == expected


# Pods that kube-scheduler has chosen a node for and makes room for there.

TAINT = Taint("team", "red", "NoSchedule")
CHOSEN = pod("chosen", pod_shape=shape("3"), nominated_node="a")
VICTIM = pod("victim", node="a", pod_shape=shape("3"), deleting=True)


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
    away = (term(HOSTNAME_LABEL),)
    alone = shape("1", labels={"app": "web"}, pod_anti_affinity=away)
    first, second = (pod(name, pod_shape=alone) for name in ("first", "second"))

    placement = planned(replace(first, nominated_node="a"), second, nodes=(node("a"), node("b")))

    assert [item.node for item in placement.occupied] == ["b"]


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (node("a", ready=False),),
        (node("a", unschedulable=True),),
        (node("a", deleting=True),),
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
    lost = pod("lost", nominated_node="gone")

    view = with_nominated(ClusterView(nodes=(node("a"),), pods=(CHOSEN, VICTIM, lost)))

    assert [(item.name, item.node_name) for item in view.nominated] == [("chosen", "a"), ("lost", None)]


# Rules between pods by kubernetes.io/hostname go by the node, node affinity by the label.

NODES = (with_hostname(node("n1"), "n3"), with_hostname(node("n2"), None), with_hostname(node("n3"), "n3"))


def where(pod_shape: PodShape, count: int) -> dict[str | None, int]:
    """Chunks by node, found right by the checker."""
    asked = demand(count=count, pod_shape=pod_shape, opens_nodes=False)
    placement = World(ClusterView(nodes=NODES), (), (), (asked,)).placed_rightly()
    return {item.node: sum(holding.count for holding in item.holdings) for item in placement.occupied}


@pytest.mark.parametrize(
    "rules",
    [
        {"topology_spread": (spread(HOSTNAME_LABEL, min_domains=3),)},
        {"pod_anti_affinity": (term(HOSTNAME_LABEL),)},
    ],
    ids=["spread", "anti-affinity"],
)
def test_each_node_is_a_host_of_its_own(rules: dict[str, Any]) -> None:
    assert where(web(**rules), 3) == {"n1": 1, "n2": 1, "n3": 1}


@pytest.mark.parametrize(
    ("operator", "nodes"), [(Operator.IN, {"n1", "n3"}), (Operator.NOT_IN, {"n2"}), (Operator.DOES_NOT_EXIST, {"n2"})]
)
def test_node_affinity_by_hostname_goes_by_the_label(operator: Operator, nodes: set[str]) -> None:
    values = () if operator is Operator.DOES_NOT_EXIST else ("n3",)
    terms = (NodeSelectorTerm((Requirement(HOSTNAME_LABEL, operator, values),)),)
    alone = (term(HOSTNAME_LABEL),)
    assert where(web(required_node_terms=terms, pod_anti_affinity=alone), len(nodes)).keys() == nodes
