"""What the embedded cluster's provider sells: instance types, their offerings, and what is out of stock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """One way to launch a node, with the labels that the node then has."""

    instance_type: InstanceType
    offering: Offering
    labels: Mapping[str, str]

    @property
    def order(self) -> tuple[float, str, str, str]:
        """Cheapest first, then by name, so that the same question has the same answer."""
        return (
            self.offering.price,
            self.instance_type.name,
            self.offering.zone,
            self.offering.capacity_type,
        )


class Market:
    """Not thread-safe: the embedded cluster guards it."""

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self.instance_types = tuple(sorted(instance_types, key=lambda item: item.name))
        self._by_name = {item.name: item for item in self.instance_types}
        self._sold_out: set[tuple[str, str, str]] = set()
        self._keys = {key for item in self.instance_types for key in _keys(item)}

    def set_stock(self, instance_type: str, zone: str, capacity_type: str, *, available: bool) -> None:
        offer = (instance_type, zone, capacity_type)
        if available:
            self._sold_out.discard(offer)
        else:
            self._sold_out.add(offer)

    def purchases(
        self,
        requirements: Iterable[Requirement],
        labels: Mapping[str, str],
        requests: Resources,
        *,
        in_stock: bool = True,
    ) -> list[LaunchOption]:
        """Every way to launch a node that meets the requirements and holds the requests, cheapest first.

        labels: those that the node has in any case. in_stock False: includes what is sold out. A requirement on a label that no type
        defines is a custom one and excludes nothing.
        """
        wanted = tuple(item for item in requirements if item.key in self._keys or item.key in labels)
        found = [
            purchase
            for item in self._listed(wanted)
            if requests.fits(item.allocatable)
            for purchase in self._offers(item, wanted, labels, in_stock=in_stock)
        ]
        return sorted(found, key=lambda purchase: purchase.order)

    def _listed(self, requirements: tuple[Requirement, ...]) -> Iterator[InstanceType]:
        """The types that an instance type requirement names, else all."""
        for requirement in requirements:
            if requirement.key == INSTANCE_TYPE_LABEL and requirement.operator is Operator.IN:
                yield from (self._by_name[name] for name in sorted(set(requirement.values)) if name in self._by_name)
                return
        yield from self.instance_types

    def _offers(
        self,
        item: InstanceType,
        requirements: tuple[Requirement, ...],
        labels: Mapping[str, str],
        *,
        in_stock: bool,
    ) -> Iterator[LaunchOption]:
        for offering in item.offerings:
            offer = (item.name, offering.zone, offering.capacity_type)
            if in_stock and (not offering.available or offer in self._sold_out):
                continue
            for system in item.operating_systems:
                own = {
                    **labels,
                    **dict(item.labels),
                    **single_valued(offering.requirements),
                    INSTANCE_TYPE_LABEL: item.name,
                    OPERATING_SYSTEM_LABEL: system,
                    ZONE_LABEL: offering.zone,
                    CAPACITY_TYPE_LABEL: offering.capacity_type,
                }
                if all(wanted.holds(own.get(wanted.key)) for wanted in requirements):
                    yield LaunchOption(item, offering, own)
                    break


def _keys(item: InstanceType) -> Iterator[str]:
    yield from (INSTANCE_TYPE_LABEL, OPERATING_SYSTEM_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    yield from (key for key, _ in item.labels)
    yield from (requirement.key for offering in item.offerings for requirement in offering.requirements)


def single_valued(requirements: Iterable[Requirement]) -> dict[str, str]:
    """The labels that requirements settle: `In` with one value."""
    return {
        requirement.key: requirement.values[0]
        for requirement in requirements
        if requirement.operator is Operator.IN and len(requirement.values) == 1
    }
