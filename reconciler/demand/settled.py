"""Demands for a forecast: nodes are also planned for buffers whose capacity an autoscaler will make. A pass makes no nodes for those, but
what a change costs includes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.demand.buffers import MOST_CHUNKS
from reconciler.model.autoscalers import ServingAutoscaler, serving_autoscaler
from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.view import ClusterView, LiveObject


def settled(demands: tuple[Demand, ...], view: ClusterView) -> tuple[Demand, ...]:
    """The same tuple if headroom makes the nodes for all of them."""
    if not any(map(_is_for_another, demands)):
        return demands
    serving = _serving(view)
    return tuple(_made_room_for(item, serving) if _is_for_another(item) else item for item in demands)


def _is_for_another(demand: Demand) -> bool:
    if demand.opens_nodes or demand.desired is None or demand.suspended:
        return False
    return demand.fulfilment in {Fulfilment.NATIVE, Fulfilment.BALLOON}


def _made_room_for(demand: Demand, serving: ServingAutoscaler | None) -> Demand:
    groups = demand.groups
    if demand.fulfilment == Fulfilment.NATIVE:
        if not groups and demand.shape is not None and demand.desired:
            groups = (ChunkGroup(demand.shape, min(demand.desired, MOST_CHUNKS)),)
        demand = replace(demand, autoscaler=demand.autoscaler or serving)
    return replace(demand, groups=groups, opens_nodes=True)


def _serving(view: ClusterView) -> ServingAutoscaler | None:
    """An autoscaler that serves any CapacityBuffer of the cluster, and so will serve another."""
    return next((item for item in map(serving_autoscaler, _in_order(view)) if item is not None), None)


def _in_order(view: ClusterView) -> Iterable[LiveObject]:
    return (view.objects[ref] for ref in sorted(view.objects))
