"""What can be bought, as the checker reads it: label values and requirements, ways to buy an instance type, and NodeOverlays.

The rules of NodeOverlays are Karpenter's (controller.go and store.go in pkg/controllers/nodeoverlay).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodeOverlay,
    NodePool,
    Offering,
)
from reconciler.model.placement import PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement

Values: TypeAlias = frozenset[str | None]
"""The values that a label of a node may get, None among them if it may be absent. An existing node has one value."""

ABSENT: Values = frozenset({None})
STABLE_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone": "topology.kubernetes.io/zone",
    "topology.disk.csi.azure.com/zone": "topology.kubernetes.io/zone",
    "topology.gke.io/zone": "topology.kubernetes.io/zone",
}


def stable_label(key: str) -> str:
    """The stable spelling of a label, by Karpenter's table (pkg/apis/v1/labels.go, NormalizedLabels)."""
    return STABLE_LABELS.get(key, key)


def decided(labels: Mapping[str, str]) -> dict[str, Values]:
    return {key: frozenset({value}) for key, value in labels.items()}


def united(alternatives: Iterable[Mapping[str, str]]) -> dict[str, Values]:
    """By label, all values that it has in any of the alternatives."""
    found = list(alternatives)
    return {key: frozenset(labels.get(key) for labels in found) for key in {key for labels in found for key in labels}}


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether a label value (None: no label) meets a node selector requirement."""
    listed = requirement.values
    match requirement.operator:
        case Operator.IN:
            return value is not None and value in listed
        case Operator.NOT_IN:
            return value is None or value not in listed
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
    try:
        number, bound = int(value or ""), int(listed[0])
    except (ValueError, IndexError):
        return False
    return {
        Operator.GT: number > bound,
        Operator.GTE: number >= bound,
        Operator.LT: number < bound,
        Operator.LTE: number <= bound,
    }[requirement.operator]


RESERVED = "reserved"


def labels_of(instance_type: InstanceType) -> dict[str, str]:
    """Labels of every node of the type, however it is bought."""
    own = {INSTANCE_TYPE_LABEL: instance_type.name, ARCHITECTURE_LABEL: instance_type.architecture}
    return dict(instance_type.labels) | own


def labels_as_offered(offering: Offering) -> dict[str, str]:
    """Labels that a node has from its offering, whatever its type."""
    single = {item.key: item.values[0] for item in offering.requirements if len(item.values) == 1}
    return single | {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}


def can_be_bought(offering: Offering) -> bool:
    """Whether it is available, and not of a capacity reservation that is used up."""
    return offering.available and (offering.capacity_type != RESERVED or bool(offering.reservation_capacity))


def ways_to_buy(instance_type: InstanceType) -> Iterable[tuple[Offering, Mapping[str, str]]]:
    """The offerings of the type that can be bought, each with all labels that a node then has."""
    for system, offering in product(instance_type.operating_systems, instance_type.offerings):
        if can_be_bought(offering):
            labels = labels_of(instance_type) | {OPERATING_SYSTEM_LABEL: system}
            yield offering, labels | labels_as_offered(offering)


def offerings_for(
    planned: PlannedNode, instance_type: InstanceType, zone: str, capacity_type: str
) -> Iterable[Offering]:
    """The type's offerings in this zone and capacity type that meet the planned node's requirements."""
    asked = {item.key: item for item in planned.requirements}
    for offering in instance_type.offerings:
        there = can_be_bought(offering) and (offering.zone, offering.capacity_type) == (zone, capacity_type)
        if there and all(holds(asked[one.key], one.values[0]) for one in offering.requirements if one.key in asked):
            yield offering


def systems_for(planned: PlannedNode, instance_type: InstanceType) -> list[str]:
    """The type's operating systems that meet the planned node's requirements."""
    asked = [item for item in planned.requirements if item.key == OPERATING_SYSTEM_LABEL]
    return [system for system in instance_type.operating_systems if all(holds(item, system) for item in asked)]


def labels_for_overlays(pool: NodePool, instance_type: InstanceType) -> dict[str, str]:
    """Labels of a type in a NodePool that an overlay can select by, whatever the offering."""
    of_pool = {stable_label(key): value for key, value in pool.template.labels}
    return labels_of(instance_type) | of_pool | {NODEPOOL_LABEL: pool.name}


def in_order(overlays: Iterable[NodeOverlay]) -> Sequence[NodeOverlay]:
    """The heaviest first, of equal weight the last by name first."""
    return sorted(sorted(overlays, key=lambda one: one.ref.name, reverse=True), key=lambda one: -one.weight)


def _matches(item: NodeOverlay, labels: Mapping[str, str]) -> bool:
    return all(holds(asked, labels.get(stable_label(asked.key))) for asked in item.requirements)


def _matching(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Iterable[NodeOverlay]:
    return (item for item in overlays if _matches(item, labels))


def overlaid_price(overlays: Sequence[NodeOverlay], labels: Mapping[str, str], price: float | None) -> float | None:
    """The price in USD an hour, None where it is unknown. An unreadable overlay, or one that adjusts an unknown price, is ignored."""
    for item in _matching(overlays, labels):
        try:
            if item.price is not None:
                return _bounded(float(item.price), price)
            if item.price_adjustment is not None:
                return price if price is None else _bounded(_adjusted(price, item.price_adjustment), price)
        except ValueError:
            return price
    return price


def _bounded(found: float, price: float | None) -> float | None:
    return price if math.isnan(found) else min(max(found, 0.0), MOST_PRICE)


def _adjusted(price: float, text: str) -> float:
    return price * (1 + float(text[:-1]) / 100) if text.endswith("%") else price + float(text)


def overlaid_capacity(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Resources:
    """Resources in addition to the instance type's own. The heaviest overlay that names a resource sets it."""
    added: dict[str, int] = {}
    for item in _matching(overlays, labels):
        for name, amount in item.capacity.amounts:
            added.setdefault(name, amount)
    return Resources.of(added)
