"""Buffers for which an autoscaler looks for room too. It must find the room that headroom holds for them, or it would make that room a
second time."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import Demand
from reconciler.model.refs import ObjectRef

_FULFILMENT, _TAKEN_BACK, _ALSO_SERVED = "Fulfilment", "TakenBack", "AlsoServed"


def served_elsewhere(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """Buffers that are being handed over, and those that both serve. A buffer taken back from a silent autoscaler is headroom's alone."""
    return frozenset(
        demand.ref
        for demand in demands
        if demand.fulfilment == Fulfilment.NATIVE
        or also_served(demand)
        or (demand.autoscaler is not None and not _says(demand, _TAKEN_BACK))
    )


def also_served(demand: Demand) -> bool:
    """Headroom keeps it, and an autoscaler is known to serve it as well."""
    return _says(demand, _ALSO_SERVED)


def _says(demand: Demand, reason: str) -> bool:
    return any(item.type == _FULFILMENT and item.reason == reason for item in demand.conditions)
