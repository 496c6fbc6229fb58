"""What a provider can launch: each way to buy an instance type, with the labels that its nodes then have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.requirements import Requirement, single_valued

RESERVED = "reserved"
"""The capacity type of offerings from a capacity reservation."""
_RESERVATION_SUFFIX = "reservation-id"
"""Every provider has a label of its own for the name of a capacity reservation. Those labels end like this."""


def type_labels(instance_type: InstanceType) -> dict[str, str]:
    """The labels of a node of this type, however it is bought."""
    own = {INSTANCE_TYPE_LABEL: instance_type.name, ARCHITECTURE_LABEL: instance_type.architecture}
    return dict(instance_type.labels) | own


def offering_labels(offering: Offering) -> dict[str, str]:
    """The labels of a node of this offering, whatever its type."""
    own = {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}
    return single_valued(offering.requirements) | own


def reservation_of(instance_type: InstanceType, offering: Offering) -> tuple[str, str]:
    """The name of the offering's capacity reservation and the label that holds it; "" for none.

    Without such a label each type and zone is a reservation of its own."""
    if offering.capacity_type != RESERVED:
        return "", ""
    for requirement in offering.requirements:
        if requirement.key.endswith(_RESERVATION_SUFFIX) and len(requirement.values) == 1:
            return requirement.values[0], requirement.key
    return f"{instance_type.name} in {offering.zone}", ""


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """One way to launch a node, with the labels that the node then has."""

    instance_type: InstanceType
    offering: Offering
    labels: Mapping[str, str]

    @property
    def place(self) -> tuple[str, str, str]:
        """Instance type, zone and capacity type."""
        return self.instance_type.name, self.offering.zone, self.offering.capacity_type


def launch_options(instance_type: InstanceType) -> list[LaunchOption]:
    """Every way to launch a node of this type, in stock or not: one for each offering and operating system."""
    own = type_labels(instance_type)
    return [
        LaunchOption(instance_type, offering, own | offering_labels(offering) | {OPERATING_SYSTEM_LABEL: system})
        for offering in instance_type.offerings
        for system in instance_type.operating_systems
    ]


class LaunchOptions:
    """Every way to launch a node of these types, in stock or not."""

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        every = [option for item in instance_types for option in launch_options(item)]
        self._every = sorted(
            every,
            key=lambda item: (item.offering.price, *item.place),
        )
        self._keys = {key for option in every for key in option.labels}

    def admitted(self, wanted: Iterable[Requirement], given: Mapping[str, str]) -> Iterator[LaunchOption]:
        """Those that meet the requirements, cheapest first, then by name; of several operating systems the first.

        given: labels that the node has in any case. A requirement on a label that no type has and that is not given is a person's own,
        and excludes nothing.
        """
        needs = [need for need in wanted if need.key in self._keys or need.key in given]
        found: set[tuple[str, int]] = set()
        for option in self._every:
            if all(need.holds(option.labels.get(need.key, given.get(need.key))) for need in needs):
                key = (option.instance_type.name, id(option.offering))
                if key not in found:
                    found.add(key)
                    yield replace(option, labels={**given, **option.labels})
