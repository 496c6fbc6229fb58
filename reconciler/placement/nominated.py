"""Pods that wait for the node that kube-scheduler has chosen for them. Called by the cycle, before anything looks at the cluster.

Where it preempts, kube-scheduler writes the node into `status.nominatedNodeName`, waits until those that it evicts have ended, and
tries that node first. Karpenter leaves such a pod alone (`IsPreempting` in pkg/utils/pod), and pods of no higher priority are kept
from the room (`RunFilterPluginsWithNominatedPods`). So the pod is as good as there. Where the node is gone, or takes no pods,
kube-scheduler looks elsewhere at its next try, and withdraws the nomination if there is nothing (`Evaluator.Preempt`): the pod waits
like any other.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView
from reconciler.placement.arriving import is_leaving
from reconciler.placement.shapes import tolerated


def with_nominated(view: ClusterView) -> ClusterView:
    """The cluster with those pods on their nodes, where these take them; the very same view where there are none."""
    wanted = {pod.nominated_node for pod in view.pods if pod.nominated_node}
    if not wanted:
        return view
    claims = {claim.node_name: claim for claim in view.node_claims}
    nodes = {
        node.name: node
        for node in view.nodes
        if node.name in wanted and node.ready and not is_leaving(node, claims.get(node.name))
    }

    def placed(pod: Pod) -> Pod:
        if pod.node_name is not None or pod.deleting or pod.nominated_node not in nodes:
            return pod
        tolerates = tolerated(nodes[pod.nominated_node].taints, pod.shape.tolerations)
        return _on_its_node(pod) if tolerates else pod

    return replace(view, pods=tuple(map(placed, view.pods)))


@lru_cache(maxsize=1024)
def _on_its_node(pod: Pod) -> Pod:
    """The same object for the same pod, so that a cluster in which nothing changed is known again (see memory)."""
    return replace(pod, node_name=pod.nominated_node)
