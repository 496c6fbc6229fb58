"""Pods that wait for the node that kube-scheduler has chosen for them.

When kube-scheduler preempts, it writes the node into `status.nominatedNodeName`. It waits until the pods that it evicts have
ended, and tries that node first. Karpenter leaves such a pod alone (`IsPreempting` in pkg/utils/pod). Pods of no higher priority
are kept from its room (`RunFilterPluginsWithNominatedPods`). So the pod is as good as bound.

If the node is gone or takes no pods, kube-scheduler looks elsewhere at its next try. It withdraws the nomination if there is no
other node (`Evaluator.Preempt`), and the pod waits like any other.
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
    """The cluster with those pods on their nodes, where these take pods. Without any such pod it is the same object."""
    if not any(map(_nominated_node, view.pods)):  # by far the fastest way to see that there are none
        return view
    nominated = {pod.nominated_node for pod in view.pods}
    nodes = {
        node.name: node
        for machine in view.machines
        if (node := machine.node) is not None and node.name in nominated
        if node.ready and not is_leaving(node, machine.node_claim)
    }
    pods = tuple(_on_its_node(pod, nodes) if pod.nominated_node else pod for pod in view.pods)
    return replace(view, pods=pods, nominated=tuple(filter(_nominated_node, pods)))


def _on_its_node(pod: Pod, nodes: Mapping[str, Node]) -> Pod:
    """nodes: those that take pods."""
    node = nodes.get(pod.nominated_node)
    if node is None or pod.deleting or not tolerated(node.taints, pod.shape.tolerations):
        return pod
    return replace(pod, node_name=node.name)
