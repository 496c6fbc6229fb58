"""NodeOverlays change what offerings cost and add capacity to instance types.

The heaviest overlay that matches wins, for the price and for each resource. An overlay sees an instance type's own labels, its NodePool's
name and the labels of the NodePool's template. As in Karpenter (getOverlaidOfferings), it sees neither the template's requirements nor the
node class.

As in Karpenter's nodeoverlay controller (1.14), overlays are applied heaviest first; of equal weight, the last by name comes first.
An overlay is left out everywhere if one of equal weight sets the same price of an offering or the same resource of a type. A
single NodePool where both apply is enough. Offerings that cannot be bought now count too, and so do NodePools without new nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import (
    MOST_PRICE,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodeOverlay,
    NodePool,
)
from reconciler.model.quantity import Resources
from reconciler.placement.amounts import Amounts
from reconciler.placement.label_table import Cell, LabelTable, Mask
from reconciler.placement.offers.offerings import NANODOLLARS, Offerings, offering_labels, type_labels
from reconciler.placement.problem import Problem
from reconciler.placement.requirements import Requirements


def adjusted_prices(offerings: Offerings, overlays: Sequence[NodeOverlay], pool: NodePool) -> tuple[Amounts, Mask]:
    """Prices by row for nodes of the pool, and which of them are known. An overlay may set a price that the catalog lacks."""
    prices, known = offerings.prices.copy(), offerings.known.copy()
    settled = np.zeros(len(prices), dtype=np.bool_)
    for overlay in by_weight(overlays):
        if not overlay.sets_price:
            continue
        mask = reached(offerings.table, overlay, labels_of_pool(pool)) & ~settled
        if mask.any():
            prices[mask] = [_adjusted(price, overlay) for price in prices[mask].tolist()]
            settled |= mask
            known[mask] |= overlay.price is not None and _is_price(overlay.price)
    return prices, known


def added_capacity(
    offerings: Offerings, overlays: Sequence[NodeOverlay], pool: NodePool, buyable: Mask
) -> dict[int, Resources]:
    """By type index, the resources that overlays set. An overlay must match every offering of the type that the pool may buy."""
    added: dict[int, Resources] = {}
    for overlay in by_weight(overlays):
        if not overlay.capacity:
            continue
        mask = reached(offerings.table, overlay, labels_of_pool(pool))
        partly = offerings.types_in(buyable & ~mask)
        for index in np.flatnonzero(offerings.types_in(buyable & mask) & ~partly).tolist():
            settled = added.get(index, Resources())
            news = [(name, amount) for name, amount in overlay.capacity if not settled.get(name)]
            added[index] = settled + Resources.of(news)
    return added


def by_weight(overlays: Sequence[NodeOverlay]) -> tuple[NodeOverlay, ...]:
    """Heaviest first; of equal weight, the last by name first (Karpenter's NodeOverlayList.OrderByWeight)."""
    return tuple(sorted(overlays, key=lambda overlay: (overlay.weight, overlay.ref), reverse=True))


def labels_of_pool(pool: NodePool) -> Requirements:
    """The labels of a NodePool that an overlay can select by."""
    return Requirements.labels([*pool.template.labels, (NODEPOOL_LABEL, pool.name)])


def reached(table: LabelTable, overlay: NodeOverlay, pool_labels: Requirements) -> Mask:
    """The rows of offerings that the overlay matches in a NodePool. An offering has a row for each operating system, and if one
    row matches, all do."""
    wanted = Requirements.of(overlay.requirements)
    for key, values in wanted.entries:
        known = pool_labels.get(key)
        unknown = known is None and key not in table.keys
        if (unknown and not values.absent) or (known is not None and known.intersection(values).is_empty):
            return np.zeros(len(table), dtype=np.bool_)
    return table.matching(wanted.only(table.keys), possibly=True)


def _adjusted(price: int, overlay: NodeOverlay) -> int:
    """As Karpenter computes it: a percentage of the price or a sum in USD, never below 0. An unreadable value changes nothing.

    A cluster may hold a price that the repository may not: a price over `MOST_PRICE` counts as `MOST_PRICE`.
    """
    try:
        exact = _exact(price, overlay)
    except InvalidOperation:
        return price
    if exact.is_nan():
        return price
    return round(min(max(exact, Decimal(0)), Decimal(MOST_PRICE * NANODOLLARS)))


def _is_price(text: str) -> bool:
    try:
        return not Decimal(text).is_nan()
    except InvalidOperation:
        return False


def _exact(price: int, overlay: NodeOverlay) -> Decimal:
    if overlay.price is not None:
        return Decimal(overlay.price) * NANODOLLARS
    text = overlay.price_adjustment or "0"
    if text.endswith("%"):
        return price * (100 + Decimal(text[:-1])) / 100
    return price + Decimal(text) * NANODOLLARS


_NOBODY = -1


@dataclass(frozen=True, slots=True)
class OverlaysInForce:
    """overlays: those in force, heaviest first. left_out: a sentence for each of the others."""

    overlays: tuple[NodeOverlay, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Conflict:
    """other: the overlay in force. sets: what both set. where: the first instance type and NodePool where both do."""

    other: NodeOverlay
    sets: str
    where: str


def overlays_in_force(problem: Problem) -> OverlaysInForce:
    order = by_weight(problem.overlays)
    if len({overlay.weight for overlay in order}) == len(order):
        return OverlaysInForce(order)
    ledger = _Ledger(problem.node_pools, problem.instance_types)
    kept, left_out = [], []
    for overlay in order:
        conflict = ledger.enter(overlay)
        if conflict is None:
            kept.append(overlay)
        else:
            left_out.append(
                f"{overlay.ref} is left out, as Karpenter leaves it out: {conflict.other.ref} is of equal weight and sets "
                f"{conflict.sets} {conflict.where} too; give one of them another weight"
            )
    return OverlaysInForce(tuple(kept), tuple(left_out))


class _Ledger:
    """Which overlay last set what, by NodePool: prices by offering, resources by instance type."""

    def __init__(self, node_pools: Sequence[NodePool], instance_types: Sequence[InstanceType]) -> None:
        self._pools = sorted(node_pools, key=lambda pool: pool.name)
        self._types = sorted(instance_types, key=lambda instance_type: instance_type.name)
        self._table = LabelTable([labels for instance_type in self._types for labels in _sold_as(instance_type)])
        self._types_of = np.repeat(
            np.arange(len(self._types)), [len(instance_type.offerings) for instance_type in self._types]
        )
        self._entered: list[NodeOverlay] = []
        self._prices = [_nobody(len(self._types_of)) for _ in self._pools]
        self._resources = [_nobody(len(self._types)) for _ in self._pools]

    def enter(self, overlay: NodeOverlay) -> _Conflict | None:
        """Enters what the overlay sets in all NodePools; nothing if it conflicts in any of them."""
        masks = [reached(self._table, overlay, labels_of_pool(pool)) for pool in self._pools]
        for number, mask in enumerate(masks):
            conflict = self._conflict(overlay, number, mask)
            if conflict is not None:
                return conflict
        self._entered.append(overlay)
        for number, mask in enumerate(masks):
            if overlay.sets_price:
                self._prices[number][mask] = len(self._entered) - 1
            if overlay.capacity:
                self._resources[number][self._types_of[mask]] = len(self._entered) - 1
        return None

    def _conflict(self, overlay: NodeOverlay, number: int, mask: Mask) -> _Conflict | None:
        instance_types = self._types_of[mask]
        if overlay.sets_price:
            for instance_type, last in zip(instance_types.tolist(), self._prices[number][mask].tolist(), strict=True):
                if last != _NOBODY and self._entered[last].weight == overlay.weight:
                    return self._on(instance_type, number, self._entered[last], "the price of")
        names = set(overlay.capacity.names())
        for instance_type in dict.fromkeys(instance_types.tolist()) if names else ():
            last = int(self._resources[number][instance_type])
            if last != _NOBODY and self._entered[last].weight == overlay.weight:
                both = names.intersection(self._entered[last].capacity.names())
                if both:
                    return self._on(instance_type, number, self._entered[last], f"{min(both)} of")
        return None

    def _on(self, instance_type: int, number: int, other: NodeOverlay, sets: str) -> _Conflict:
        return _Conflict(other, sets, f"{self._types[instance_type].name} in NodePool {self._pools[number].name}")


def _nobody(size: int) -> NDArray[np.int64]:
    return np.full(size, _NOBODY, dtype=np.int64)


def _sold_as(instance_type: InstanceType) -> list[Mapping[str, Cell]]:
    """Labels by offering. An overlay sees one offering, whichever operating systems it runs."""
    own: dict[str, Cell] = {**type_labels(instance_type), OPERATING_SYSTEM_LABEL: instance_type.operating_systems}
    return [{**own, **offering_labels(item)} for item in instance_type.offerings]
