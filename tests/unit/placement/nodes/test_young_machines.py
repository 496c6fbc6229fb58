"""A machine whose node has joined before Karpenter registered it: it is one bin, and what its NodeClaim says counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, PLACEHOLDER_LABEL, ZONE_LABEL, NodeClaim
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.pods import PodShape
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, resources, shape

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


def test_the_checker_refuses_to_give_its_room_away_twice() -> None:
    twice = Placement(
        occupied=(
            OccupiedBin("joined", None, (Holding(buffer_ref(), 0, 2),)),
            OccupiedBin(None, "claim", (Holding(buffer_ref(), 0, 2),)),
        )
    )
    assert violations(problem(demand(count=4)), twice) == ("claim: there is no such bin",)


def test_its_node_claim_says_where_and_what_it_is() -> None:
    wanted = demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-a", INSTANCE_TYPE_LABEL: "small"}))
    assert on_existing(placed(wanted)) == {"joined": 1}
    elsewhere = demand(count=1, pod_shape=shape(node_selector={ZONE_LABEL: "zone-b"}))
    assert on_existing(placed(elsewhere)) == {}


def tolerant(key: str) -> PodShape:
    return replace(shape(), tolerations=(Toleration(key, "Exists"),))


@pytest.mark.parametrize(("asked", "expected"), [(shape(), {}), (tolerant("team"), {"joined": 1})])
def test_the_taints_of_its_node_claim_are_to_come(asked: PodShape, expected: dict[str, int]) -> None:
    view = replace(VIEW, node_claims=(replace(CLAIM, taints=(Taint("team", "a", "NoSchedule"),)),))
    assert on_existing(placed(demand(count=1, pod_shape=asked), view)) == expected
