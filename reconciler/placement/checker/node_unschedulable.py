"""Nodes that take no more pods (kube-scheduler's plugin NodeUnschedulable, and Karpenter's taint on nodes it is about to remove)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.model.machines import Machine
from reconciler.model.nodes import DISRUPTED_TAINT
from reconciler.placement.checker.checked_node import is_initialized


def unschedulable_violations(machine: Machine, keeping: Collection[str] = ()) -> Iterable[str]:
    """Until it is initialized, a node that is not ready may still come up. keeping: names of nodes whose chunks wait for them."""
    node, claim = machine.node, machine.node_claim
    if claim is not None and claim.deleting:
        yield f"{claim.name}: is being deleted"
    if node is not None:
        disrupted = any(taint.key == DISRUPTED_TAINT for taint in node.taints)
        not_ready = is_initialized(machine) and not node.ready and node.name not in keeping
        if node.deleting or node.unschedulable or disrupted or not_ready:
            yield f"{node.name}: takes no more pods"
