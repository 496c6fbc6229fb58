"""Pods that wait for the node that kube-scheduler has chosen for them. Called by the cycle, before anything looks at the cluster.

Where it preempts, kube-scheduler writes the node into `status.nominatedNodeName`, waits until those that it evicts have ended, and
tries that node first. Karpenter leaves such a pod alone (`IsPreempting` in pkg/utils/pod), and pods of no higher priority are kept
from the room (`RunFilterPluginsWithNominatedPods`). So the pod is as good as there. Where the node is gone, or takes no pods,
kube-scheduler looks elsewhere at its next try, and withdraws the nomination if there is nothing (`Evaluator.Preempt`): the pod waits
like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from reconciler.model.nodes import Node
from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.taint_toleration import tolerated
from reconciler.placement.nodes.arriving import is_leaving

_nominated_node = attrgetter("nominated_node")


def with_nominated(view: ClusterView) -> ClusterView:
    """The cluster with those pods on their nodes, where these take them; the very same view where there are none."""
    if not any(map(_nominated_node, view.pods)):  # much the fastest way to see that there are none
        return view
    wanted = {pod.nominated_node for pod in view.pods}
    claims = {claim.node_name: claim for claim in view.node_claims}
    nodes = {
        node.name: node
        for node in view.nodes
        if node.name in wanted and node.ready and not is_leaving(node, claims.get(node.name))
    }
    pods = tuple(_on_its_node(pod, nodes) if pod.nominated_node else pod for pod in view.pods)
    return replace(view, pods=pods, nominated=tuple(filter(_nominated_node, pods)))


def _on_its_node(pod: Pod, nodes: Mapping[str, Node]) -> Pod:
    """nodes: those that take pods."""
    node = nodes.get(pod.nominated_node)
    if node is None or pod.deleting or not tolerated(node.taints, pod.shape.tolerations):
        return pod
    return replace(pod, node_name=node.name)
