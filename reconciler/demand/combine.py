"""All demands of a pass, in the order in which they are placed, and those of a forecast: the package's entry.

A forecast also plans nodes for buffers whose capacity an autoscaler will make. A pass makes none for those, but what a change costs
includes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.pods import pending_demands
from reconciler.demand.provisioning_requests import request_demands
from reconciler.demand.size import Dialect
from reconciler.model.autoscalers import ServingAutoscaler, serving_autoscaler
from reconciler.model.buffers import MOST_CHUNKS, Fulfilment
from reconciler.model.declared import Declared
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.pass_memory import PassMemory
from reconciler.model.provisioning_requests import RequestRules, selects_reserved_nodes
from reconciler.model.view import ClusterView, LiveObject

_ORDER = attrgetter("order")


def demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    include_pending: bool = False,
    instance_types: Sequence[InstanceType] = (),
    now: datetime | None = None,
    requests: RequestRules | None = None,
    memory: PassMemory | None = None,
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """Pending pods first, then requests and buffers in the order in which they are served (`Demand.order`). The second result is the
    findings on buffers and provisioning requests.

    declared: the repository's documents merged over the cluster's own.
    include_pending: new nodes may be planned for pending pods.
    instance_types: a chunk must fit one of them where a buffer on a node class does not size it; without types it is one core.
    now: by the cluster's clock, for the age of a status. None leaves out provisioning requests, since their phases go by time.
    memory: buffers of the previous pass, so that only those that changed are computed again.
    """
    asked: tuple[Demand, ...] = ()
    of_requests: tuple[Finding, ...] = ()
    if now is not None and (declared.provisioning_requests or view.pods):  # a pod may name one that is not there
        asked, of_requests = request_demands(declared, view, now, requests or RequestRules())
    buffers, findings = buffer_demands(
        declared, view, dialect=dialect, instance_types=instance_types, now=now, memory=memory
    )
    pods = _of_no_request(pending_demands(view, include_pending=include_pending), asked)
    ordered = sorted((*asked, *_kept_from(asked, buffers)), key=_ORDER)
    return (*pods, *ordered), (*of_requests, *findings)


def _of_no_request(pods: tuple[Demand, ...], requests: Sequence[Demand]) -> tuple[Demand, ...]:
    """Without pods that select the nodes of a request: their room is among what the request asks for."""
    asking = {
        value for item in requests if item.request is not None and item.groups for _, value in item.request.details
    }
    if not asking:
        return pods
    return tuple(pod for pod in pods if selects_reserved_nodes(pod.groups[0].shape) not in asking)


def with_leaving(found: Sequence[Demand], leaving: Sequence[Demand]) -> tuple[Demand, ...]:
    """Puts them after the pending pods. leaving: pods of nodes that are being deleted."""
    waiting = sum(item.is_pending_pod for item in found)
    return (*found[:waiting], *leaving, *found[waiting:])


def _kept_from(requests: Sequence[Demand], buffers: Sequence[Demand]) -> Sequence[Demand]:
    """Ranks buffers that may serve no request above all that ask for room now, so that no request takes their room."""
    highest = max((item.priority for item in requests if item.groups and not item.booked), default=None)
    if highest is None:
        return buffers
    return [item if item.serves_requests else replace(item, kept_from=highest) for item in buffers]


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
