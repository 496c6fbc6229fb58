"""NodeOverlays of equal weight that set the same: which stays in force, as Karpenter decides it, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from reconciler.manifests.requirements import requirements_of
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, InstanceType, NodeOverlay, NodePool, Offering
from reconciler.model.placement import Placement
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.offerings import valid_overlays
from reconciler.placement.checker.violations import violations
from reconciler.placement.offers.offerings import overlays_in_force
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node_pool, shape
from tests.unit.placement.placement_cases import CASES

POOL = node_pool()
GENERAL = replace(
    POOL,
    template=replace(
        POOL.template, labels=(("team", "red"),), requirements=(Requirement("tier", Operator.IN, ("gold",)),)
    ),
)
OTHER = replace(node_pool("other"), replicas=2)
"""Static: nothing is planned in it, and overlays meet it nevertheless."""


@cache
def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load(
        (CASES / "overlay_conflicts.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    return found


def types_of(case: Mapping[str, Any]) -> tuple[InstanceType, ...]:
    def dollar(offering: Offering) -> Offering:
        gone = [offering.zone, offering.capacity_type] == case.get("sold_out")
        return replace(offering, price=1.0, available=not gone)

    kinds = (
        instance_type("small", zones=("a", "b"), capacity_types=("on-demand", "spot")),
        instance_type("large", zones=("a",), capacity_types=("on-demand",)),
    )
    return tuple(replace(kind, offerings=tuple(map(dollar, kind.offerings))) for kind in kinds)


def overlays_of(case: Mapping[str, Any]) -> tuple[NodeOverlay, ...]:
    return tuple(
        NodeOverlay(
            ObjectRef("karpenter.sh", "NodeOverlay", "", name),
            requirements_of(spec.get("requirements")),
            spec.get("weight", 0),
            spec.get("price"),
            spec.get("priceAdjustment"),
            Resources.parse(spec.get("capacity", {})),
        )
        for name, spec in case["overlays"].items()
    )


def names(overlays: Any) -> list[str]:
    return [overlay.ref.name for overlay in overlays]


POOLS: tuple[NodePool, ...] = (GENERAL, OTHER)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_those_in_force_are_karpenters(case: Mapping[str, Any]) -> None:
    found = overlays_in_force(Problem(ClusterView(), POOLS, types_of(case), overlays=overlays_of(case)))

    assert names(found.overlays) == case["in_force"]
    assert len(found.left_out) == len(case["out"])
    for sentence, (name, words) in zip(sorted(found.left_out), sorted(case["out"].items()), strict=True):
        assert sentence.startswith(f"NodeOverlay/{name} is left out")
        assert words in sentence


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_checker_finds_the_same_in_force(case: Mapping[str, Any]) -> None:
    assert names(valid_overlays(overlays_of(case), POOLS, types_of(case))) == case["in_force"]


@pytest.mark.parametrize("case", [case for case in cases() if "prices" in case], ids=lambda case: case["name"])
def test_new_nodes_have_the_prices_of_those_in_force(case: Mapping[str, Any]) -> None:
    for kind, price in case["prices"].items():
        placement = placed(case, kind)
        assert [node.price for node in placement.planned] == [pytest.approx(price)], kind
        assert set(
            overlays_in_force(Problem(ClusterView(), POOLS, types_of(case), overlays=overlays_of(case))).left_out
        ) <= set(placement.assumptions)


def placed(case: Mapping[str, Any], kind: str) -> Placement:
    """One chunk that will have this type only."""
    world: dict[str, Any] = {
        "node_pools": POOLS,
        "instance_types": types_of(case),
        "demands": (demand(count=1, pod_shape=shape(node_selector={INSTANCE_TYPE_LABEL: kind})),),
        "overlays": overlays_of(case),
    }
    placement = place(Problem(ClusterView(), **world))
    assert violations(Problem(ClusterView(), **world), placement) == ()
    return placement
