"""Pending pods as demands: they take free room before any chunk does."""

from __future__ import annotations

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.pods import Pod, admitted
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
