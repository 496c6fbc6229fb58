"""NodeOverlays change what offerings cost and add capacity to instance types.

The heaviest overlay that matches wins, for the price and for each resource. An overlay sees an instance type's own labels, its NodePool's
name and the labels of the NodePool's template. As in Karpenter (getOverlaidOfferings), it sees neither the template's requirements nor the
node class.

As in Karpenter's nodeoverlay controller (1.14), overlays are applied heaviest first; of equal weight, the last by name comes first.
An overlay is left out everywhere if one of equal weight sets the same price of an offering or the same resource of a type. A
single NodePool where both apply is enough. Offerings that cannot be bought now count too, and so do NodePools without new nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from operator import itemgetter

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
from reconciler.placement.offers.offerings import NANODOLLARS, Offerings, offering_labels, type_labels
from reconciler.placement.problem import Problem
from reconciler.placement.requirements import Cell, LabelTable, Mask, Requirements


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


@dataclass(frozen=True, slots=True)
class OverlaysInForce:
    """overlays: those in force, heaviest first. left_out: a sentence for each of the others."""

    overlays: tuple[NodeOverlay, ...]
    left_out: tuple[str, ...] = ()


def overlays_in_force(problem: Problem) -> OverlaysInForce:
    order = by_weight(problem.overlays)
    if len({overlay.weight for overlay in order}) == len(order):
        return OverlaysInForce(order)
    types = sorted(problem.instance_types, key=lambda instance_type: instance_type.name)
    pools = sorted(problem.node_pools, key=lambda pool: pool.name)
    table = LabelTable([labels for instance_type in types for labels in _sold_as(instance_type)])
    sold = np.repeat(np.arange(len(types)), [len(instance_type.offerings) for instance_type in types])
    kept: dict[NodeOverlay, list[Mask]] = {}
    left_out = []
    for overlay in order:
        masks = [reached(table, overlay, labels_of_pool(pool)) for pool in pools]
        conflict = next(_conflicts(overlay, masks, kept, sold), None)
        if conflict is None:
            kept[overlay] = masks
            continue
        pool, instance_type, other, sets = conflict
        left_out.append(
            f"{overlay.ref} is left out, as Karpenter leaves it out: {other.ref} is of equal weight and sets {sets} "
            f"{types[instance_type].name} in NodePool {pools[pool].name} too; give one of them another weight"
        )
    return OverlaysInForce(tuple(kept), tuple(left_out))


def _conflicts(
    overlay: NodeOverlay, masks: Sequence[Mask], kept: Mapping[NodeOverlay, Sequence[Mask]], sold: NDArray[np.intp]
) -> Iterator[tuple[int, int, NodeOverlay, str]]:
    """Numbers of a NodePool and a type where an overlay of equal weight is in force, that one, and what both set.

    masks: by NodePool, the offerings that the overlay matches. kept: the same of those in force. sold: by offering, its type."""
    names = set(overlay.capacity.names())
    for pool, mask in enumerate(masks):
        pricing = [
            other for other in kept if other.sets_price and overlay.sets_price and other.weight == overlay.weight
        ]
        both = [(other, sold[mask & kept[other][pool]].tolist()) for other in pricing]
        priced = [(pool, types[0], other, "the price of") for other, types in both if types]
        yield from sorted(priced, key=itemgetter(1))
        # Karpenter remembers only the last overlay that set any resource of the type.
        last = {number: other for other in kept if other.capacity for number in sold[kept[other][pool]].tolist()}
        for number in dict.fromkeys(sold[mask].tolist()):
            if number in last and last[number].weight == overlay.weight:
                same = names.intersection(last[number].capacity.names())
                yield from ((pool, number, last[number], f"{name} of") for name in sorted(same))


def _sold_as(instance_type: InstanceType) -> list[Mapping[str, Cell]]:
    """Labels by offering. An overlay sees one offering, whichever operating systems it runs."""
    own: dict[str, Cell] = {**type_labels(instance_type), OPERATING_SYSTEM_LABEL: instance_type.operating_systems}
    return [{**own, **offering_labels(item)} for item in instance_type.offerings]
