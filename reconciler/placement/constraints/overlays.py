"""NodeOverlays change what offerings cost and add capacity to instance types.

The heaviest overlay that matches wins, for the price and for each resource. `overlay_conflicts.py` has already left out overlays
of equal weight that set the same. An overlay sees an instance type's own labels, its NodePool's name and the labels of the
NodePool's template. As in Karpenter (getOverlaidOfferings), it sees neither the template's requirements nor the node class.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

from reconciler.model.nodes import MOST_PRICE, NODEPOOL_LABEL, NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.placement.amounts import Amounts
from reconciler.placement.label_table import LabelTable, Mask
from reconciler.placement.offers.offerings import NANODOLLARS, Offerings
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
