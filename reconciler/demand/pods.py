"""Pods as demands: those that are pending, those of nodes that are being deleted, and balloon pods that are about to go.

Pending pods take free room before any chunk does. Pods of nodes that go will need another node. They count only for the what-if of
`--include-pending`: Karpenter provisions for them together with pending pods, before they are evicted (Provisioner.Schedule). An ordinary
pass counts them where they run, and as pending pods once they are evicted. The room of balloon pods that go belongs to their buffer,
whoever keeps it next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.model.buffers import Fulfilment, balloon_of, balloon_ref
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import DISRUPTED_TAINT, Node, NodeClaim
from reconciler.model.pods import Pod, admitted, is_kept, is_never_evicted
from reconciler.model.refs import POD_KIND, ObjectRef
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
    """The sort key of the order in which pods are placed."""
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
    nodes = _nodes_to_go(view)
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


def _nodes_to_go(view: ClusterView) -> set[str]:
    """Nodes being deleted, by themselves or by their NodeClaim, and those that carry the taint of disruption."""
    return {
        machine.node.name
        for machine in view.machines
        if machine.node is not None and _is_going(machine.node, machine.node_claim)
    }


def _is_going(node: Node, claim: NodeClaim | None) -> bool:
    deleted = node.deleting or (claim is not None and claim.deleting)
    return deleted or any(taint.key == DISRUPTED_TAINT for taint in node.taints)


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
