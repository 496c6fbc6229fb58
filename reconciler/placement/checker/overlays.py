"""NodeOverlays: which are in force, and how they change prices and capacities.

The rules are Karpenter's (controller.go and store.go in pkg/controllers/nodeoverlay).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.model.nodes import (
    MOST_PRICE,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.placement.checker.labels import holds, stable_label
from reconciler.placement.checker.offerings import labels_as_offered, labels_of


def labels_for_overlays(pool: NodePool, instance_type: InstanceType) -> dict[str, str]:
    """Labels of a type in a NodePool that an overlay can select by, whatever the offering."""
    of_pool = {stable_label(key): value for key, value in pool.template.labels}
    return labels_of(instance_type) | of_pool | {NODEPOOL_LABEL: pool.name}


def valid_overlays(
    overlays: Sequence[NodeOverlay], pools: Collection[NodePool], instance_types: Collection[InstanceType]
) -> Sequence[NodeOverlay]:
    """The overlays without conflict: heaviest first, of equal weight the last by name first. One in conflict with an earlier valid
    one is left out."""
    valid: list[NodeOverlay] = []
    for item in sorted(sorted(overlays, key=lambda one: one.ref.name, reverse=True), key=lambda one: -one.weight):
        rivals = any(other.weight == item.weight for other in valid)
        if not rivals or not any(_conflicts(item, valid, pool, one) for pool in pools for one in instance_types):
            valid.append(item)
    return valid


def _conflicts(item: NodeOverlay, valid: Sequence[NodeOverlay], pool: NodePool, instance_type: InstanceType) -> bool:
    touched = [offering for offering in instance_type.offerings if _touches(item, pool, instance_type, offering)]
    if not touched:
        return False
    pricing = [other for other in valid if other.weight == item.weight and _changes_price(other)]
    if _changes_price(item) and any(_touches(other, pool, instance_type, one) for other in pricing for one in touched):
        return True
    # Karpenter remembers only the last overlay that set any resource of the type.
    setting = [
        other
        for other in valid
        if other.capacity and any(_touches(other, pool, instance_type, one) for one in instance_type.offerings)
    ]
    if not setting or setting[-1].weight != item.weight:
        return False
    return bool(set(item.capacity.names()) & set(setting[-1].capacity.names()))


def _changes_price(item: NodeOverlay) -> bool:
    return (item.price, item.price_adjustment) != (None, None)


def _touches(item: NodeOverlay, pool: NodePool, instance_type: InstanceType, offering: Offering) -> bool:
    labels = labels_for_overlays(pool, instance_type)
    for asked in item.requirements:
        if (key := stable_label(asked.key)) in labels and not holds(asked, labels[key]):
            return False
    labels |= labels_as_offered(offering)
    return any(_matches(item, labels | {OPERATING_SYSTEM_LABEL: one}) for one in instance_type.operating_systems)


def _matches(item: NodeOverlay, labels: Mapping[str, str]) -> bool:
    return all(holds(asked, labels.get(stable_label(asked.key))) for asked in item.requirements)


def _matching(valid: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Iterable[NodeOverlay]:
    return (item for item in valid if _matches(item, labels))


def overlaid_price(valid: Sequence[NodeOverlay], labels: Mapping[str, str], price: float | None) -> float | None:
    """The price in USD an hour, None where it is unknown. An unreadable overlay, or one that adjusts an unknown price, is ignored."""
    for item in _matching(valid, labels):
        try:
            if item.price is not None:
                return _bounded(float(item.price), price)
            if item.price_adjustment is not None:
                return price if price is None else _bounded(_adjusted(price, item.price_adjustment), price)
        except ValueError:
            return price
    return price


def _bounded(found: float, price: float | None) -> float | None:
    return price if math.isnan(found) else min(max(found, 0.0), MOST_PRICE)


def _adjusted(price: float, text: str) -> float:
    return price * (1 + float(text[:-1]) / 100) if text.endswith("%") else price + float(text)


def overlaid_capacity(valid: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Resources:
    """Resources in addition to the instance type's own. The heaviest overlay that names a resource sets it."""
    added: dict[str, int] = {}
    for item in _matching(valid, labels):
        for name, amount in item.capacity.amounts:
            added.setdefault(name, amount)
    return Resources.of(added)
