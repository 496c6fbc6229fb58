"""Static NodePools that are to shrink, and the pods that keep their nodes.

Karpenter 1.14 (controllers/static/deprovisioning) deletes surplus nodes whatever the NodePool's budgets say: empty ones first,
those with do-not-disrupt pods last. A node being drained waits for its do-not-disrupt pods, and for pods that a
PodDisruptionBudget does not let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.model.pods import why_not_evicted_now
from reconciler.model.refs import ObjectRef, abridged
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, by_node_pool
from reconciler.plan.codes import STATIC_POOL_BLOCKED

_MOST_SHOWN = 5


def static_pool_findings(
    pools: Iterable[NodePool],
    bins: Sequence[Bin],
    view: ClusterView,
    now: datetime,
) -> tuple[Finding, ...]:
    """One for every static pool whose pods keep more nodes than it is to have."""
    pools = [pool for pool in pools if pool.replicas is not None]
    if not pools:
        return ()
    by_node: dict[str, list[str]] = {}
    for pod in view.pods:
        if pod.node_name is None:
            continue
        why = why_not_evicted_now(pod, view.pod_disruption_budgets, now)
        if why:
            by_node.setdefault(pod.node_name, []).append(f"{pod.namespace}/{pod.name} on {pod.node_name} ({why})")
    by_pool = by_node_pool(bins)
    found = []
    for pool in pools:
        assert pool.replicas is not None
        nodes = by_pool.get(pool.name, [])
        blocked = {item.name: by_node[item.name] for item in nodes if item.name in by_node}
        if len(nodes) > pool.replicas and len(blocked) > pool.replicas:
            found.append(_finding(pool, len(nodes), blocked))
    return tuple(found)


def _finding(pool: NodePool, nodes: int, blocked: Mapping[str, Sequence[str]]) -> Finding:
    code = STATIC_POOL_BLOCKED
    pods = [text for node in sorted(blocked) for text in blocked[node]]
    message = (
        f"it is to have {pool.replicas:,} nodes and has {nodes:,}, of which {len(blocked):,} cannot go while"
        f" pods that may not be evicted run there: {abridged(pods, _MOST_SHOWN)}"
    )
    hint = "they go when these pods end; spec.template.spec.terminationGracePeriod would bound the wait"
    return Finding(
        code.name,
        code.severity,
        message,
        pool.position,
        ObjectRef("karpenter.sh", "NodePool", "", pool.name),
        "spec.replicas",
        hint,
    )
