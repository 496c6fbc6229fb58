"""Buffers for which an autoscaler looks for room too: it must find the room that headroom holds for them, and not make it a second time."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import Demand
from reconciler.model.refs import ObjectRef

_FULFILMENT, _TAKEN_BACK = "Fulfilment", "TakenBack"


def served_elsewhere(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """While a buffer is handed over, and while both serve it. One that was taken back from a silent autoscaler is headroom's alone."""
    return frozenset(
        demand.ref
        for demand in demands
        if demand.fulfilment == Fulfilment.NATIVE or (demand.autoscaler is not None and not _is_taken_back(demand))
    )


def _is_taken_back(demand: Demand) -> bool:
    return any(item.type == _FULFILMENT and item.reason == _TAKEN_BACK for item in demand.conditions)
