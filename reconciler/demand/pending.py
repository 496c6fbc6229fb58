"""Pending pods as demands: they take free room before any chunk does. Used by combine and leaving."""

from __future__ import annotations

from reconciler.model.demand import POD_KIND, ChunkGroup, Demand
from reconciler.model.pods import Pod
from reconciler.model.refs import ObjectRef
from reconciler.model.runtime_classes import admitted
from reconciler.model.view import ClusterView


def pending_demands(view: ClusterView, *, include_pending: bool) -> tuple[Demand, ...]:
    """One demand for each pod that waits for a node, highest priority first, then by namespace and name.

    Left out: pods held by scheduling gates (they ask for nothing yet), pods on their way out, and daemon pods (room for
    them is reckoned with every node). include_pending: may new nodes be planned for them.
    """
    waiting = [
        pod for pod in view.pods if pod.node_name is None and not pod.gated and not pod.deleting and not pod.is_daemon
    ]
    waiting.sort(key=turn)
    return tuple(demand_of_pod(pod, view, opens_nodes=include_pending) for pod in waiting)


def turn(pod: Pod) -> tuple[int, str, str]:
    """Pods sorted by it come in the order in which they are placed."""
    return (-pod.priority, pod.namespace, pod.name)


def demand_of_pod(pod: Pod, view: ClusterView, *, opens_nodes: bool) -> Demand:
    return Demand(
        ref=ObjectRef("", POD_KIND, pod.namespace, pod.name),
        groups=(ChunkGroup(admitted(pod.shape, view.runtime_classes), 1),),
        desired=1,
        priority=pod.priority,
        opens_nodes=opens_nodes,
    )
