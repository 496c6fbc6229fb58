"""What NodeOverlays make of prices and capacities, for the checker; shares nothing with the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from reconciler.model.nodes import MOST_PRICE
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.placement.checked_sites import holds


def _matching(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> list[NodeOverlay]:
    """Heaviest first, of equal ones the last by name."""
    found = [item for item in overlays if all(holds(asked, labels.get(asked.key)) for asked in item.requirements)]
    return sorted(sorted(found, key=lambda item: item.ref.name, reverse=True), key=lambda item: -item.weight)


def overlaid_price(overlays: Sequence[NodeOverlay], labels: Mapping[str, str], price: float) -> float:
    """USD an hour; an adjustment that cannot be read changes nothing."""
    for item in _matching(overlays, labels):
        try:
            if item.price is not None:
                return _bounded(float(item.price), price)
            if item.price_adjustment is not None:
                return _bounded(_adjusted(price, item.price_adjustment), price)
        except ValueError:
            return price
    return price


def _bounded(found: float, price: float) -> float:
    return price if math.isnan(found) else min(max(found, 0.0), MOST_PRICE)


def _adjusted(price: float, text: str) -> float:
    return price * (1 + float(text[:-1]) / 100) if text.endswith("%") else price + float(text)


def overlaid_capacity(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Resources:
    """What comes on top of an instance type's own."""
    added: dict[str, int] = {}
    for item in _matching(overlays, labels):
        for name, amount in item.capacity.amounts:
            added.setdefault(name, amount)
    return Resources.of(added)
