"""All demands of a pass, in the order in which they are placed, and those of a forecast: the package's entry. And pods as demands.

Pending pods take free room before any chunk does. Pods of nodes that are being deleted will need another node. They count only for the
what-if of `--include-pending`: Karpenter provisions for them together with pending pods, before they are evicted (Provisioner.Schedule). An
ordinary pass counts them where they run, and as pending pods once they are evicted. The room of balloon pods that go belongs to their
buffer, whoever keeps it next.

A forecast also plans nodes for buffers whose capacity an autoscaler will make. A pass makes none for those, but what a change costs
includes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.provisioning_requests import request_demands
from reconciler.model.autoscalers import ServingAutoscaler, serving_autoscaler
from reconciler.model.buffers import MOST_CHUNKS, SHRINK_AFTER, Dialect, Fulfilment, balloon_of, balloon_ref
from reconciler.model.declared import Declared
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.pods import Pod, admitted, is_kept, is_never_evicted
from reconciler.model.provisioning_requests import RequestRules, selects_reserved_nodes
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView


def pending_demands(view: ClusterView, *, include_pending: bool) -> tuple[Demand, ...]:
    """One demand for each pod that waits for a node, highest priority first, then by namespace and name.

    Left out: pods with scheduling gates, which ask for nothing yet, terminating pods, and daemon pods, whose requests
    are part of every node's overhead. include_pending: new nodes may be planned for them.
    """
    waiting = [
        pod for pod in view.pods if pod.node_name is None and not pod.gated and not pod.deleting and not pod.is_daemon
    ]
    waiting.sort(key=turn)
    return tuple(demand_of_pod(pod, view, opens_nodes=include_pending) for pod in waiting)


def turn(pod: Pod) -> tuple[int, str, str]:
    return (-pod.priority, pod.namespace, pod.name)


def demand_of_pod(pod: Pod, view: ClusterView, *, opens_nodes: bool) -> Demand:
    """One chunk of the pod's shape, with what RuntimeClass admission adds."""
    return Demand(
        ref=ObjectRef("", POD_KIND, pod.namespace, pod.name),
        groups=(ChunkGroup(admitted(pod.shape, view.runtime_classes), 1),),
        desired=1,
        priority=pod.priority,
        opens_nodes=opens_nodes,
    )


def leaving_demands(view: ClusterView, now: datetime) -> tuple[Demand, ...]:
    """One demand for each bound pod that Karpenter provisions for, highest priority first.

    Daemon and mirror pods, terminating pods and pods that cannot be evicted are left out (Karpenter:
    `IsCurrentlyReschedulable`). A StatefulSet's terminating pod stays in, since it is only recreated once it is gone.
    """
    # Nodes that are being deleted, by themselves or by their NodeClaim, and those that carry the taint of disruption.
    nodes = {machine.node.name for machine in view.machines if machine.node is not None and machine.is_going}
    pods = [pod for pod in view.pods if pod.node_name in nodes and _will_move(pod, view, now)] if nodes else []
    return tuple(
        replace(
            demand_of_pod(pod, view, opens_nodes=True),
            explanation=(f"it runs on {pod.node_name}, which is being deleted, and needs another place",),
            leaves=pod.node_name or "",
        )
        for pod in sorted(pods, key=turn)
    )


def without_leaving(view: ClusterView, demands: tuple[Demand, ...]) -> ClusterView:
    """The cluster without the pods that leave their nodes; the same object where there are none."""
    gone = {(demand.ref.namespace, demand.ref.name) for demand in demands if demand.leaves}
    if not gone:
        return view
    return replace(view, pods=tuple(pod for pod in view.pods if (pod.namespace, pod.name) not in gone))


def _will_move(pod: Pod, view: ClusterView, now: datetime) -> bool:
    if pod.is_daemon:
        return False
    if pod.deleting:
        return pod.owner_kind == "StatefulSet"
    return not is_kept(pod, now) and not is_never_evicted(pod, view.pod_disruption_budgets)


def leaving_balloons(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """Balloon Deployments that this pass deletes if they exist: placeholders or an autoscaler keep their buffers now. An autoscaler counts
    once it reports the buffer as provisioned."""
    return frozenset(balloon_ref(demand.ref) for demand in demands if demand.desired is not None and _is_let_go(demand))


def without_balloons(view: ClusterView, leaving: Collection[ObjectRef]) -> ClusterView:
    """The view without their pods, so that chunks can be placed in that room. The same object if there are none."""
    pods = tuple(pod for pod in view.pods if balloon_of(pod) not in leaving)
    return view if len(pods) == len(view.pods) else replace(view, pods=pods)


def without_waiting_balloons(
    demands: Sequence[Demand], view: ClusterView, leaving: Collection[ObjectRef]
) -> tuple[Demand, ...]:
    """Leaves out their pending pods: a pod that is about to be deleted needs no room."""
    gone = {(pod.namespace, pod.name) for pod in view.pods if balloon_of(pod) in leaving}
    return tuple(
        demand for demand in demands if not demand.is_pending_pod or (demand.ref.namespace, demand.ref.name) not in gone
    )


def _is_let_go(demand: Demand) -> bool:
    if demand.fulfilment == Fulfilment.NATIVE:
        return demand.autoscaler is not None and demand.autoscaler.reports
    return demand.fulfilment == Fulfilment.PLACEHOLDER and not demand.is_pending_pod


def demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    include_pending: bool = False,
    instance_types: Sequence[InstanceType] = (),
    now: datetime | None = None,
    requests: RequestRules | None = None,
    shrink_after: timedelta = SHRINK_AFTER,
    cache: PassCache | None = None,
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """Pending pods first, then requests and buffers in the order in which they are served (`Demand.order`). The second result is the
    findings on buffers and provisioning requests.

    declared: the repository's documents merged over the cluster's own.
    include_pending: new nodes may be planned for pending pods.
    instance_types: a chunk must fit one of them where a buffer on a node class does not size it; without types it is one core.
    now: by the cluster's clock, for the age of a status. None leaves out provisioning requests, since their phases go by time.
    cache: buffers of the previous pass, so that only those that changed are computed again.
    """
    asked: tuple[Demand, ...] = ()
    of_requests: tuple[Finding, ...] = ()
    if now is not None and (declared.provisioning_requests or view.pods):  # a pod may name one that is not there
        asked, of_requests = request_demands(declared, view, now, requests or RequestRules())
    buffers, findings = buffer_demands(
        declared,
        view,
        dialect=dialect,
        instance_types=instance_types,
        now=now,
        shrink_after=shrink_after,
        cache=cache,
    )
    pods = _of_no_request(pending_demands(view, include_pending=include_pending), asked)
    ordered = sorted((*asked, *_kept_from(asked, buffers)), key=attrgetter("order"))
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
    found = (serving_autoscaler(view.objects[ref]) for ref in sorted(view.objects))
    return next((item for item in found if item is not None), None)
