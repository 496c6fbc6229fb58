"""What Karpenter's own scheduler decided for the same pools, types and pods: feasibility must agree, cost may be better."""

from __future__ import annotations

from collections import Counter

import pytest

from reconciler.model.placement import Placement
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.unit.placement.placement_cases import Case, cases

KNOWN_LIMITS: dict[str, str] = {}
"""Cases that are not met yet, with what is missing; one that comes to be met must leave this list."""

MORE_IS_PLACED = {
    "anti-affinity-zone-self-one-round": "zones are decided here and now, not one pod a round",
    "affinity-zone-target-undecided": "likewise",
    "kwok-limit-pessimistic-over-options": "a node is charged what it will be, and its alternatives only if the limit allows",
    "existing-hostname-selector": "a node that is there may be asked for by name, as kube-scheduler has it",
}
"""Where a better planner rightly places what Karpenter leaves for later."""

LESS_IS_PLACED = {
    "affinity-self-zone-two-selectors": "kube-scheduler lets only the first of pods that want company start a zone of its own"
}
"""Where Karpenter makes nodes for pods that kube-scheduler will then not bind."""


def placed(case: Case) -> Placement:
    return place(
        Problem(
            case.view,
            case.node_pools,
            case.instance_types,
            case.demands,
            options=PlacementOptions(include_pending=True),
        )
    )


def unplaced(placement: Placement) -> dict[str, int]:
    return dict(Counter(item.demand.name.rsplit("-", 1)[0] for item in placement.unplaced for _ in range(item.count)))


def total(counts: dict[str, int]) -> int:
    return sum(counts.values())


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_places_what_karpenter_places_at_no_higher_price(case: Case) -> None:
    placement = placed(case)

    found, expected = unplaced(placement), case.expected["unschedulablePods"]
    if case.name in MORE_IS_PLACED:
        assert case.quirk
        assert total(found) < total(expected)
    elif case.name in LESS_IS_PLACED:
        assert total(found) > total(expected)
    else:
        met = found == expected and no_dearer(case, placement)
        assert met != (case.name in KNOWN_LIMITS), (found, expected, [node.price for node in placement.planned])
    assert violations(Problem(case.view, case.node_pools, case.instance_types, case.demands), placement) == ()


def no_dearer(case: Case, placement: Placement) -> bool:
    price = case.expected.get("totalPrice")
    return price is None or sum(node.price for node in placement.planned) <= price + 1e-6


@pytest.mark.parametrize("case", [case for case in cases() if not case.quirk], ids=lambda case: case.name)
def test_takes_the_same_node_pools(case: Case) -> None:
    pools = {node.node_pool for node in placed(case).planned}

    assert pools == set(case.expected.get("nodePools", pools))


@pytest.mark.parametrize("case", [case for case in cases() if case.expected["existing"]], ids=lambda case: case.name)
def test_uses_the_nodes_that_are_there(case: Case) -> None:
    found = {
        item.node: dict(Counter(holding.demand.name.rsplit("-", 1)[0] for holding in item.holdings))
        for item in placed(case).occupied
    }

    assert found == case.expected["existing"]


def test_every_reason_tells_how_many_candidates_gave_it() -> None:
    for case in cases():
        for item in placed(case).unplaced:
            assert item.reasons, case.name
            assert all(reason.count > 0 and reason.cause and reason.example for reason in item.reasons)
