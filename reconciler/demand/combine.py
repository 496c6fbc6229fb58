"""All demands of a pass, in the order in which they are placed: the package's entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.pending import pending_demands
from reconciler.demand.provisioning_requests import request_demands
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.pass_memory import PassMemory
from reconciler.model.provisioning_requests import RequestRules, selects_reserved_nodes
from reconciler.model.view import ClusterView


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
    asked, of_requests = ((), ()) if now is None else request_demands(declared, view, now, requests or RequestRules())
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


_ORDER = attrgetter("order")
