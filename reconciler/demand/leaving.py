"""Pods of nodes that are being deleted, as demands: they will need another node.

Only for the what-if of `--include-pending`: Karpenter provisions for them together with pending pods, before they are evicted
(Provisioner.Schedule). An ordinary pass counts them where they run, and as pending pods once they are evicted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reconciler.demand.pending import demand_of_pod, turn
from reconciler.model.demand import Demand
from reconciler.model.nodes import DISRUPTED_TAINT, Node, NodeClaim
from reconciler.model.pods import Pod, is_kept, is_never_evicted
from reconciler.model.view import ClusterView


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
