"""Static NodePools: how many nodes each gains and loses once a plan is applied, which go, and the pods that keep their nodes.

Karpenter 1.14 acts by itself as soon as `spec.replicas` changes. It makes missing nodes within `limits.nodes`
(controllers/static/provisioning). Of surplus ones it removes NodeClaims without an instance first, then empty nodes, and those with
do-not-disrupt pods last, whatever the NodePool's budgets say (controllers/static/deprovisioning). A node being drained waits for its
do-not-disrupt pods, and for pods that a PodDisruptionBudget does not let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from reconciler.model import codes
from reconciler.model.changes import Action, ObjectChange, StaticPoolChange
from reconciler.model.findings import Finding
from reconciler.model.launch_options import LaunchOptions
from reconciler.model.nodes import InstanceType, NodePool, node_pool_ref
from reconciler.model.pods import why_not_evicted_now
from reconciler.model.refs import ObjectRef, abridged
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView, LiveObject, Manifest
from reconciler.plan.bins import Bin, by_node_pool, standing_by_pool

_NODE_POOL = "NodePool"
_NODES = "nodes"
_MOST_SHOWN = 5


def static_pool_changes(
    pools: Iterable[NodePool],
    objects: Mapping[ObjectRef, LiveObject],
    changes: Iterable[ObjectChange],
    bins: Sequence[Bin],
    instance_types: Sequence[InstanceType],
) -> tuple[StaticPoolChange, ...]:
    """Pools that gain or lose nodes, by name. pools: those in force; objects: the cluster's; changes: what the plan applies."""
    typed = {pool.name: pool for pool in pools}
    there = standing_by_pool(bins)
    found = []
    for name, replicas in sorted(_replicas_after(objects, changes).items()):
        before = there[name]
        after = nodes_after(typed.get(name), before, replicas)
        if after > before:
            kind, price = cheapest_admitted(typed[name], instance_types)
            found.append(StaticPoolChange(name, before, after, kind, price, replicas - after))
        elif after < before:
            found.append(StaticPoolChange(name, before, after))
    return tuple(found)


def leaving(change: StaticPoolChange, bins: Iterable[Bin]) -> frozenset[str]:
    """Names of the bins that go, as far as that can be foreseen."""
    own = [item for item in bins if item.node_pool == change.node_pool and not item.is_going]
    own.sort(key=lambda item: (item.node is not None, item.in_use, item.name))
    return frozenset(item.name for item in own[: max(0, change.before - change.after)])


def _replicas_after(objects: Mapping[ObjectRef, LiveObject], changes: Iterable[ObjectChange]) -> dict[str, int]:
    """What every static NodePool asks for when the changes are applied; a deleted one loses its nodes with it."""
    replicas = {
        ref.name: count
        for ref, live in objects.items()
        if ref.kind == _NODE_POOL and (count := _replicas_of(live.body)) is not None
    }
    for change in changes:
        if change.ref.kind != _NODE_POOL:
            continue
        count = _replicas_of(change.manifest or {})
        if change.action is not Action.DELETE and count is not None:
            replicas[change.ref.name] = count
        elif change.action is Action.DELETE and change.ref.name in replicas:
            replicas[change.ref.name] = 0
    return replicas


def _replicas_of(body: Manifest) -> int | None:
    replicas = (body.get("spec") or {}).get("replicas")
    return replicas if isinstance(replicas, int) else None


def nodes_after(pool: NodePool | None, before: int, replicas: int) -> int:
    """A pool that is not ready or is being deleted gets no more. Limits keep it from growing, and take nothing away."""
    if replicas <= before:
        return replicas
    if pool is None or pool.deleting or pool.unready:
        return before
    return max(before, min(replicas, dict(pool.limits or ()).get(_NODES, replicas)))


def cheapest_admitted(pool: NodePool, instance_types: Iterable[InstanceType]) -> tuple[str, float | None]:
    """Instance type and USD an hour of the cheapest node that the pool may buy; ("", None) if no price is known."""
    template = pool.template
    fixed = (Requirement(key, Operator.IN, (value,)) for key, value in template.labels)
    options = LaunchOptions(instance_types).admitted((*template.requirements, *fixed), {})
    paid = (item for item in options if item.offering.available and item.offering.price_known)
    best = next(paid, None)
    return ("", None) if best is None else (best.instance_type.name, best.offering.price)


def static_pool_findings(
    pools: Iterable[NodePool], bins: Sequence[Bin], view: ClusterView, now: datetime
) -> tuple[Finding, ...]:
    """One for every static pool whose pods keep more nodes than it is to have."""
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
        if pool.replicas is None:
            continue
        nodes = by_pool.get(pool.name, [])
        blocked = {item.name: by_node[item.name] for item in nodes if item.name in by_node}
        if len(nodes) > pool.replicas and len(blocked) > pool.replicas:
            found.append(_finding(pool, len(nodes), blocked))
    return tuple(found)


def _finding(pool: NodePool, nodes: int, blocked: Mapping[str, Sequence[str]]) -> Finding:
    pods = [text for node in sorted(blocked) for text in blocked[node]]
    message = (
        f"it is to have {pool.replicas:,} nodes and has {nodes:,}, of which {len(blocked):,} cannot go while"
        f" pods that may not be evicted run there: {abridged(pods, _MOST_SHOWN)}"
    )
    hint = "they go when these pods end; spec.template.spec.terminationGracePeriod would bound the wait"
    return codes.STATIC_POOL_BLOCKED.finding(message, pool.position, node_pool_ref(pool.name), "spec.replicas", hint)
