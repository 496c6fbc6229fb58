"""NodeOverlays laid over offerings: other prices, more capacity. Used by candidates.

The heaviest overlay that matches wins, for the price and for each resource; of equal weight the last by name, as Karpenter orders
them (NodeOverlayList.OrderByWeight).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

from reconciler.model.nodes import MOST_PRICE
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.offerings import NANODOLLARS, Offerings
from reconciler.placement.requirements import Requirements


def adjusted_prices(offerings: Offerings, overlays: Sequence[NodeOverlay], template: Requirements) -> Amounts:
    """Prices by row for nodes of a pool whose labels and requirements are `template`."""
    prices = offerings.prices.copy()
    settled = np.zeros(len(prices), dtype=np.bool_)
    for overlay in _by_weight(overlays):
        if overlay.price is None and overlay.price_adjustment is None:
            continue
        mask = _rows(offerings, overlay, template) & ~settled
        if mask.any():
            prices[mask] = [_adjusted(price, overlay) for price in prices[mask].tolist()]
            settled |= mask
    return prices


def added_capacity(
    offerings: Offerings, overlays: Sequence[NodeOverlay], template: Requirements
) -> dict[int, Resources]:
    """Resources by type index that overlays set; only where every offering of the type that the pool may buy matches."""
    added: dict[int, Resources] = {}
    rows = offerings.table.matching(template.only(offerings.table.keys))
    for overlay in _by_weight(overlays):
        if not overlay.capacity:
            continue
        mask = _rows(offerings, overlay, template)
        partly = offerings.types_in(rows & ~mask)
        for index in np.flatnonzero(offerings.types_in(rows & mask) & ~partly).tolist():
            settled = added.get(index, Resources())
            news = [(name, amount) for name, amount in overlay.capacity if not settled.get(name)]
            added[index] = settled + Resources.of(news)
    return added


def _by_weight(overlays: Sequence[NodeOverlay]) -> list[NodeOverlay]:
    return sorted(overlays, key=lambda overlay: (overlay.weight, overlay.ref), reverse=True)


def _rows(offerings: Offerings, overlay: NodeOverlay, template: Requirements) -> Mask:
    wanted = Requirements.of(overlay.requirements)
    others = wanted.without(offerings.table.keys)
    for key, values in others.entries:
        known = template.get(key)
        if not values.absent if known is None else known.intersection(values).is_empty:
            return np.zeros(len(offerings.types_of), dtype=np.bool_)
    return offerings.table.matching(wanted.only(offerings.table.keys))


def _adjusted(price: int, overlay: NodeOverlay) -> int:
    """As Karpenter reckons it: a percentage of the price or a sum in USD, never below 0. What cannot be read changes nothing.

    A cluster may hold a price that the repository may not: more than `MOST_PRICE` is as dear as that.
    """
    try:
        exact = _exact(price, overlay)
    except InvalidOperation:
        return price
    if exact.is_nan():
        return price
    return round(min(max(exact, Decimal(0)), Decimal(MOST_PRICE * NANODOLLARS)))


def _exact(price: int, overlay: NodeOverlay) -> Decimal:
    if overlay.price is not None:
        return Decimal(overlay.price) * NANODOLLARS
    text = overlay.price_adjustment or "0"
    if text.endswith("%"):
        return price * (100 + Decimal(text[:-1])) / 100
    return price + Decimal(text) * NANODOLLARS
