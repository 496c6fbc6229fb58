"""The catalog as rows, one for each way to buy an instance type: type × operating system × offering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.model.requirements import Operator
from reconciler.placement.amounts import Amounts
from reconciler.placement.problem import BackOff
from reconciler.placement.requirements import LabelTable

NANODOLLARS = 10**9
RESERVED = "reserved"
_RESERVATION_SUFFIX = "reservation-id"
"""Every provider has a label of its own for the name of a capacity reservation. Those labels end like this."""

_CORE_WEIGHT, _GIBIBYTE_WEIGHT = 400.0, 50.0
"""What a core and a GiB of memory count in USD an hour where no price is known.

The ratio of 8 to 1 is about that of the large clouds' price lists. The amounts are 10,000 times theirs, so that a type with a
known price is chosen wherever one will do.
"""


@dataclass(frozen=True, slots=True)
class Offerings:
    """What can be bought, without regard to NodePools.

    types: sorted by name. table: the labels of each row. types_of: by row, an index into types.
    zones, capacity_types: by row. prices: by row, in billionths of a USD an hour, so that sums compare exactly.
    known: by row, whether the price is known, or only stands in for one when choices are compared.
    reservations, reservation_keys: by row, the name of its capacity reservation and the label that says so, "" for none.
    reserved: by reservation, how many nodes are left. left_out: sentences on what is not planned with.
    unavailable: labels of what cannot be bought now, or is backed off from.
    others_may_buy: labels of what is not planned with, though a NodeClaim on its way may still be launched as that.
    """

    types: tuple[InstanceType, ...]
    table: LabelTable
    types_of: NDArray[np.intp]
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]
    prices: Amounts
    known: NDArray[np.bool_]
    reservations: tuple[str, ...] = ()
    reservation_keys: tuple[str, ...] = ()
    reserved: Mapping[str, int] = field(default_factory=dict)
    unavailable: tuple[Mapping[str, str], ...] = ()
    others_may_buy: tuple[Mapping[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    allocatable: tuple[Resources, ...] = ()
    """By type, what pods may request on one. Computed once, since every NodePool asks for it."""

    def types_in(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which types have at least one of these rows."""
        mask = np.zeros(len(self.types), dtype=np.bool_)
        mask[self.types_of[rows]] = True
        return mask

    def rows_of(self, types: Sequence[int]) -> NDArray[np.bool_]:
        """The rows of these types."""
        mask = np.zeros(len(self.types), dtype=np.bool_)
        mask[types] = True
        return mask[self.types_of]


def offerings_of(instance_types: Sequence[InstanceType], back_offs: frozenset[BackOff]) -> Offerings:
    """Only what is available now and not backed off from."""
    types = tuple(sorted(instance_types, key=lambda item: item.name))
    labels: list[dict[str, str]] = []
    rows: list[tuple[int, Offering]] = []
    reserved = _reserved(types)
    unavailable: list[Mapping[str, str]] = []
    others_may_buy: list[Mapping[str, str]] = []
    uncounted = 0
    for index, instance_type in enumerate(types):
        own = type_labels(instance_type)
        systems = [own | {OPERATING_SYSTEM_LABEL: system} for system in instance_type.operating_systems]
        for offering in sorted(instance_type.offerings, key=lambda item: (item.zone, item.capacity_type, item.price)):
            if not offering.available or (instance_type.name, offering.zone, offering.capacity_type) in back_offs:
                unavailable.append(own | offering_labels(offering))
                if offering.available:
                    others_may_buy.append(unavailable[-1])
                continue
            if offering.capacity_type == RESERVED:
                if offering.reservation_capacity is None:
                    uncounted += 1
                if not offering.reservation_capacity:
                    continue
                if not reserved[_reservation(instance_type, offering)[0]]:
                    # Another type says that this reservation is used up, and either may be out of date.
                    others_may_buy.append(own | offering_labels(offering))
                    continue
            sold_as = offering_labels(offering)
            for with_system in systems:
                rows.append((index, offering))
                labels.append(with_system | sold_as)
    held_back = [_reservation(types[index], offering) for index, offering in rows]
    return Offerings(
        types=types,
        table=LabelTable(labels),
        types_of=np.array([index for index, _ in rows], dtype=np.intp),
        zones=tuple(offering.zone for _, offering in rows),
        capacity_types=tuple(offering.capacity_type for _, offering in rows),
        prices=np.array([_weighed(types[index], offering) for index, offering in rows], dtype=np.int64),
        known=np.array([offering.price_known for _, offering in rows], dtype=np.bool_),
        reservations=tuple(name for name, _ in held_back),
        reservation_keys=tuple(key for _, key in held_back),
        reserved=reserved,
        unavailable=tuple(unavailable),
        others_may_buy=tuple(others_may_buy),
        left_out=_left_out(uncounted),
        allocatable=tuple(instance_type.allocatable for instance_type in types),
    )


def _reserved(types: Sequence[InstanceType]) -> dict[str, int]:
    """By reservation, how many nodes are left.

    Several offerings may name the same reservation, some with an older count. As in Karpenter the least counts, even that of an
    offering that cannot be bought.
    """
    left: dict[str, int] = {}
    for instance_type in types:
        for offering in instance_type.offerings:
            if offering.capacity_type == RESERVED and offering.reservation_capacity is not None:
                name, _ = _reservation(instance_type, offering)
                left[name] = min(left.get(name, offering.reservation_capacity), offering.reservation_capacity)
    return left


def _weighed(instance_type: InstanceType, offering: Offering) -> int:
    """The price in billionths of a USD an hour.

    Where none is known, a stand-in: smaller types count as cheaper, and all as dearer than types with a known price.
    """
    if offering.price_known:
        return round(offering.price * NANODOLLARS)
    cores, gibibytes = instance_type.capacity.get(CPU) / 1000, instance_type.capacity.get(MEMORY) / 2**30
    return round(min(cores * _CORE_WEIGHT + gibibytes * _GIBIBYTE_WEIGHT, MOST_PRICE) * NANODOLLARS)


def _reservation(instance_type: InstanceType, offering: Offering) -> tuple[str, str]:
    """The reservation's name and the label that holds it. Without such a label each type and zone is a reservation of its own."""
    if offering.capacity_type != RESERVED:
        return "", ""
    for requirement in offering.requirements:
        if requirement.key.endswith(_RESERVATION_SUFFIX) and len(requirement.values) == 1:
            return requirement.values[0], requirement.key
    return f"{instance_type.name} in {offering.zone}", ""


def _left_out(uncounted: int) -> tuple[str, ...]:
    if not uncounted:
        return ()
    verb = "offering without ReservationCapacity is" if uncounted == 1 else "offerings without ReservationCapacity are"
    return (f"{uncounted} reserved {verb} not planned with",)


def type_labels(instance_type: InstanceType) -> dict[str, str]:
    """The labels of a node of this type, however it is bought."""
    return dict(instance_type.labels) | {
        INSTANCE_TYPE_LABEL: instance_type.name,
        ARCHITECTURE_LABEL: instance_type.architecture,
    }


def offering_labels(offering: Offering) -> dict[str, str]:
    """The labels of a node of this offering, whatever its type."""
    labels = {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}
    for requirement in offering.requirements:
        key = requirement.key
        if key not in labels and requirement.operator is Operator.IN and len(requirement.values) == 1:
            labels[key] = requirement.values[0]
    return labels
