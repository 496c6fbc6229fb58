"""Which NodeOverlays are in force, and which are left out because they conflict with another of equal weight.

As in Karpenter's nodeoverlay controller (1.14), overlays are applied heaviest first; of equal weight, the last by name comes first.
An overlay is left out everywhere if one of equal weight sets the same price of an offering or the same resource of a type. A
single NodePool where both apply is enough. Offerings that cannot be bought now count too, and so do NodePools without new nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import OPERATING_SYSTEM_LABEL, InstanceType, NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.placement.constraints.overlays import by_weight, labels_of_pool, reached
from reconciler.placement.label_table import Cell, LabelTable, Mask
from reconciler.placement.offers.offerings import offering_labels, type_labels
from reconciler.placement.problem import Problem

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
