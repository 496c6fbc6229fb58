"""What NodeOverlays make of prices and capacities, for the checker; shares nothing with the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
                return float(item.price)
            if item.price_adjustment is not None:
                return max(0.0, _adjusted(price, item.price_adjustment))
        except ValueError:
            return price
    return price


def _adjusted(price: float, text: str) -> float:
    return price * (1 + float(text[:-1]) / 100) if text.endswith("%") else price + float(text)


def overlaid_capacity(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Resources:
    """What comes on top of an instance type's own."""
    added: dict[str, int] = {}
    for item in _matching(overlays, labels):
        for name, amount in item.capacity.amounts:
            added.setdefault(name, amount)
    return Resources.of(added)
