"""The catalog as rows, one for each way to buy an instance type: type × operating system × offering. And what NodeOverlays change of it.

Overlays change what offerings cost and add capacity to instance types. The heaviest that matches wins, for the price and for each resource.
An overlay sees an instance type's own labels, its NodePool's name and the labels of the NodePool's template. As in Karpenter
(getOverlaidOfferings), it sees neither the template's requirements nor the node class.

As in Karpenter's nodeoverlay controller (1.14), overlays are applied heaviest first; of equal weight, the last by name comes first. That
Karpenter ignores one of two that set the same is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reconciler.model.launch_options import RESERVED, offering_labels, reservation_of, type_labels
from reconciler.model.nodes import (
    MOST_PRICE,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodeOverlay,
    NodePool,
    Offering,
)
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.placement.arrays import Amounts
from reconciler.placement.problem import BackOff
from reconciler.placement.requirements import LabelTable, Mask, Requirements

NANODOLLARS = 10**9

_CORE_WEIGHT, _GIBIBYTE_WEIGHT = 400.0, 50.0
"""What a core and a GiB of memory count in USD an hour where no price is known.

The ratio of 8 to 1 is about that of the large clouds' price lists. The amounts are 10,000 times theirs, so that a type with a
known price is chosen wherever one will do.
"""


@dataclass(frozen=True, slots=True)
class Offerings:
    """What can be bought, without regard to NodePools.

    types: sorted by name. table: the labels of each row. types_of: by row, an index into types.
    places: by row, zone and capacity type. prices: by row, in billionths of a USD an hour, so that sums compare exactly.
    known: by row, whether the price is known, or only stands in for one when choices are compared.
    reservations: by row, the name of its capacity reservation and the label that says so, "" for none.
    reserved: by reservation, how many nodes are left. left_out: sentences on what is not planned with.
    unavailable: labels of what cannot be bought now, or is backed off from.
    others_may_buy: labels of what is not planned with, though a NodeClaim on its way may still be launched as that.
    """

    types: tuple[InstanceType, ...]
    table: LabelTable
    types_of: NDArray[np.intp]
    places: tuple[tuple[str, str], ...]
    prices: Amounts
    known: NDArray[np.bool_]
    reservations: tuple[tuple[str, str], ...] = ()
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
        for offering in sorted(instance_type.offerings, key=lambda item: (item.zone, item.capacity_type, item.price)):
            sold_as = type_labels(instance_type) | offering_labels(offering)
            if not offering.available or (instance_type.name, offering.zone, offering.capacity_type) in back_offs:
                unavailable.append(sold_as)
                if offering.available:
                    others_may_buy.append(sold_as)
            elif offering.capacity_type == RESERVED and offering.reservation_capacity is None:
                uncounted += 1
            elif offering.capacity_type == RESERVED and not reserved[reservation_of(instance_type, offering)[0]]:
                # Another type may say that this reservation is used up, and either may be out of date.
                if offering.reservation_capacity:
                    others_may_buy.append(sold_as)
            else:
                for system in instance_type.operating_systems:
                    rows.append((index, offering))
                    labels.append(sold_as | {OPERATING_SYSTEM_LABEL: system})
    verb = "offering without ReservationCapacity is" if uncounted == 1 else "offerings without ReservationCapacity are"
    return Offerings(
        types=types,
        table=LabelTable(labels),
        types_of=np.array([index for index, _ in rows], dtype=np.intp),
        places=tuple((offering.zone, offering.capacity_type) for _, offering in rows),
        prices=np.array([_weighed(types[index], offering) for index, offering in rows], dtype=np.int64),
        known=np.array([offering.price_known for _, offering in rows], dtype=np.bool_),
        reservations=tuple(reservation_of(types[index], offering) for index, offering in rows),
        reserved=reserved,
        unavailable=tuple(unavailable),
        others_may_buy=tuple(others_may_buy),
        left_out=(f"{uncounted} reserved {verb} not planned with",) if uncounted else (),
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
                name, _ = reservation_of(instance_type, offering)
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


def adjusted_prices(offerings: Offerings, overlays: Sequence[NodeOverlay], pool: NodePool) -> tuple[Amounts, Mask]:
    """Prices by row for nodes of the pool, and which of them are known. An overlay may set a price that the catalog lacks."""
    prices, known = offerings.prices.copy(), offerings.known.copy()
    settled = np.zeros(len(prices), dtype=np.bool_)
    for overlay in by_weight(overlays):
        if not overlay.sets_price:
            continue
        mask = _reached(offerings.table, overlay, pool) & ~settled
        if mask.any():
            prices[mask] = [_adjusted(price, overlay) for price in prices[mask].tolist()]
            settled |= mask
            known[mask] |= overlay.price is not None and _exact(0, overlay) is not None
    return prices, known


def added_capacity(
    offerings: Offerings, overlays: Sequence[NodeOverlay], pool: NodePool, buyable: Mask
) -> dict[int, Resources]:
    """By type index, the resources that overlays set. An overlay must match every offering of the type that the pool may buy."""
    added: dict[int, Resources] = {}
    for overlay in by_weight(overlays):
        if not overlay.capacity:
            continue
        mask = _reached(offerings.table, overlay, pool)
        partly = offerings.types_in(buyable & ~mask)
        for index in np.flatnonzero(offerings.types_in(buyable & mask) & ~partly).tolist():
            settled = added.get(index, Resources())
            news = [(name, amount) for name, amount in overlay.capacity if not settled.get(name)]
            added[index] = settled + Resources.of(news)
    return added


def by_weight(overlays: Sequence[NodeOverlay]) -> tuple[NodeOverlay, ...]:
    """Heaviest first; of equal weight, the last by name first (Karpenter's NodeOverlayList.OrderByWeight)."""
    return tuple(sorted(overlays, key=lambda overlay: (overlay.weight, overlay.ref), reverse=True))


def ruled_out_by(own: Requirements, keys: Collection[str], wanted: Requirements) -> tuple[str, bool] | None:
    """The first label for which a NodePool can have nothing, and whether it is one that neither the pool nor the catalog defines.

    A label that nobody defines is no obstacle if the node may lack it. own: what the pool says of labels. keys: those of the catalog."""
    for key, values in wanted.entries:
        known = own.get(key)
        if known is not None and known.intersection(values).is_empty:
            return key, False
        if known is None and key not in keys and not values.absent:
            return key, True
    return None


def _reached(table: LabelTable, overlay: NodeOverlay, pool: NodePool) -> Mask:
    """The rows of offerings that the overlay matches in a NodePool, by labels of its template too. An offering has a row for each operating
    system, and if one row matches, all do."""
    own = Requirements.labels([*pool.template.labels, (NODEPOOL_LABEL, pool.name)])
    wanted = Requirements.of(overlay.requirements)
    if ruled_out_by(own, table.keys, wanted) is not None:
        return np.zeros(len(table), dtype=np.bool_)
    return table.matching(wanted.only(table.keys), possibly=True)


def _adjusted(price: int, overlay: NodeOverlay) -> int:
    """As Karpenter computes it: a percentage of the price or a sum in USD, never below 0. An unreadable value changes nothing.

    A cluster may hold a price that the repository may not: a price over `MOST_PRICE` counts as `MOST_PRICE`.
    """
    exact = _exact(price, overlay)
    return price if exact is None else round(min(max(exact, Decimal(0)), Decimal(MOST_PRICE * NANODOLLARS)))


def _exact(price: int, overlay: NodeOverlay) -> Decimal | None:
    """None where the overlay's value cannot be read."""
    try:
        if overlay.price is not None:
            exact = Decimal(overlay.price) * NANODOLLARS
        elif (text := overlay.price_adjustment or "0").endswith("%"):
            exact = price * (100 + Decimal(text[:-1])) / 100
        else:
            exact = price + Decimal(text) * NANODOLLARS
    except InvalidOperation:
        return None
    return None if exact.is_nan() else exact


def unsettled_overlays(overlays: Sequence[NodeOverlay]) -> Iterator[str]:
    """A sentence for each two of equal weight that may set the same: Karpenter ignores one of them, even where only that one matches."""
    for one, other in combinations(by_weight(overlays), 2):
        same = (one.sets_price and other.sets_price) or set(one.capacity.names()) & set(other.capacity.names())
        meet = Requirements.of(one.requirements).conflict(Requirements.of(other.requirements)) is None
        if one.weight == other.weight and same and meet:
            yield f"{one.ref} and {other.ref} are of equal weight: whether Karpenter ignores one of them is not judged"
