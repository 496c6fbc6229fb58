"""Ways to buy an instance type, and the labels that a node then has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.placement import PlannedNode
from reconciler.placement.checker.labels import holds

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
