"""What can be bought, as the checker reads it: values of labels, ways to buy an instance type, and NodeOverlays.

The rules of NodeOverlays are Karpenter's (controller.go and store.go in pkg/controllers/nodeoverlay).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TypeAlias

from reconciler.model.launch_options import RESERVED, LaunchOption, launch_options
from reconciler.model.nodes import (
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    NODEPOOL_LABEL,
    InstanceType,
    Labels,
    NodeOverlay,
    NodePool,
    Offering,
    stable_label,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Requirement, single_valued

Values: TypeAlias = frozenset[str | None]
"""The values that a label of a node may get, None among them if it may be absent. An existing node has one value."""

ABSENT: Values = frozenset({None})


def decided(labels: Mapping[str, str]) -> dict[str, Values]:
    return {key: frozenset({value}) for key, value in labels.items()}


def united(alternatives: Iterable[Mapping[str, str]]) -> dict[str, Values]:
    """By label, all values that it has in any of the alternatives."""
    found = list(alternatives)
    return {key: frozenset(labels.get(key) for labels in found) for key in {key for labels in found for key in labels}}


class CheckedCatalog:
    """Everything that can be bought, as nodes with labels. What asks for the same is judged once."""

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self._options = {item.name: launch_options(item) for item in instance_types}
        self._known: dict[tuple[object, ...], dict[str, Sequence[LaunchOption]]] = {}

    def ways(
        self, labels: Labels, requirements: Sequence[Requirement], *, in_stock: bool = True
    ) -> Iterator[LaunchOption]:
        """Every way to buy a node with these labels that meets the requirements. in_stock: only what can be bought now."""
        own = settled(labels, requirements)
        named = own.pop(INSTANCE_TYPE_LABEL, None)
        asked = tuple(item for item in requirements if item.key not in own and item.key != INSTANCE_TYPE_LABEL)
        by_name = [item for item in requirements if item.key == INSTANCE_TYPE_LABEL and named is None]
        meeting = self._known.setdefault((in_stock, asked, *own.items()), {})
        for name, options in self._options.items():
            if named not in {None, name} or not all(item.holds(name) for item in by_name):
                continue
            if name not in meeting:
                meeting[name] = [
                    option
                    for option in options
                    if not in_stock or can_be_bought(option.offering)
                    if all(option.labels.get(key, value) == value for key, value in own.items())
                    if all(item.key not in option.labels or item.holds(option.labels[item.key]) for item in asked)
                ]
            yield from meeting[name]


def settled(labels: Labels, requirements: Iterable[Requirement]) -> dict[str, str]:
    """Labels that a node will certainly have: its own, and those for which requirements allow one value."""
    return single_valued(requirements) | dict(labels)


def can_be_bought(offering: Offering) -> bool:
    """Whether it is available, and not of a capacity reservation that is used up."""
    return offering.available and (offering.capacity_type != RESERVED or bool(offering.reservation_capacity))


def labels_for_overlays(pool: NodePool, as_bought: Mapping[str, str]) -> dict[str, str]:
    """Labels that an overlay can select by. as_bought: those from the instance type and the offering."""
    of_pool = {stable_label(key): value for key, value in pool.template.labels}
    return of_pool | dict(as_bought) | {NODEPOOL_LABEL: pool.name}


def in_order(overlays: Iterable[NodeOverlay]) -> Sequence[NodeOverlay]:
    """The heaviest first, of equal weight the last by name first."""
    return sorted(sorted(overlays, key=lambda one: one.ref.name, reverse=True), key=lambda one: -one.weight)


def _matching(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Iterable[NodeOverlay]:
    holds = (all(one.holds(labels.get(stable_label(one.key))) for one in item.requirements) for item in overlays)
    return compress(overlays, holds)


def overlaid_price(overlays: Sequence[NodeOverlay], labels: Mapping[str, str], price: float | None) -> float | None:
    """The price in USD an hour, None where it is unknown. An unreadable overlay, or one that adjusts an unknown price, is ignored."""
    for item in _matching(overlays, labels):
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


def overlaid_capacity(overlays: Sequence[NodeOverlay], labels: Mapping[str, str]) -> Resources:
    """Resources in addition to the instance type's own. The heaviest overlay that names a resource sets it."""
    added: dict[str, int] = {}
    for item in _matching(overlays, labels):
        for name, amount in item.capacity.amounts:
            added.setdefault(name, amount)
    return Resources.of(added)
