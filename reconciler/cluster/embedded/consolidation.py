"""The embedded cluster's consolidation: removes empty nodes once they may go. Driven by World, beside its Karpenter.

A node is empty if it has only daemon pods. It is removed `consolidateAfter` after its last pod event (or its initialization), within
the pool's budgets for Empty. `karpenter.sh/do-not-disrupt` on it or its NodeClaim prevents that. One that has drifted is removed at
once, within the budgets for Drifted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from reconciler.cluster.embedded.karpenter import MANAGER, claim_ref
from reconciler.cluster.embedded.store import Body, stamp
from reconciler.cluster.embedded.world import World
from reconciler.model.nodes import DO_NOT_DISRUPT, NODEPOOL_LABEL, Node, NodeClaim, NodePool
from reconciler.model.refs import ObjectRef
from reconciler.plan.bins import all_bins
from reconciler.plan.node_pools.budget_timeline import budget_spans
from reconciler.plan.node_pools.disruption_budgets import DRIFTED, EMPTY, PoolState, allowed, pool_state
from reconciler.ports import Event

RETRY = timedelta(seconds=10)
"""How often Karpenter looks again when a budget was used up."""
LONGEST_WAIT = timedelta(days=1)
DEDUPED = timedelta(seconds=10)
"""Pod events of a node that are closer together are written once, as in Karpenter (controllers/nodeclaim/podevents)."""


class Consolidation:
    def __init__(self, world: World) -> None:
        self._world = world
        self._touched: dict[str, datetime] = {}
        self._dirty: set[str] = set()
        self._checks: dict[str, datetime] = {}
        self._written: dict[str, datetime] = {}

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        match ref.kind:
            case "Pod":
                body = after or before or {}
                node = (body.get("spec") or {}).get("nodeName")
                came = before is None or not (before.get("spec") or {}).get("nodeName")
                if node and (came or after is None):
                    self._touched[node] = self._world.now
                    self._dirty.add(node)
            case "Node":
                if after is None:
                    self._touched.pop(ref.name, None)
                    self._written.pop(ref.name, None)
                else:
                    if before is None:
                        self._touched[ref.name] = self._world.now
                    self._dirty.add(ref.name)
            case "NodeClaim":
                self._dirty.update(filter(None, [((after or {}).get("status") or {}).get("nodeName")]))
            case "NodePool" if before is None or after is None or before["spec"] != after["spec"]:
                self._dirty.update(
                    node.name for node in self._world.views.view().nodes if node.label(NODEPOOL_LABEL) == ref.name
                )

    def reconcile(self) -> None:
        dirty, self._dirty = sorted(self._dirty), set()
        pools = self._world.node_pools() if dirty else {}
        for name in dirty:
            self._write_pod_event(name)
            due = self._due(name, pools)
            if due is not None:
                self._check_at(name, due)

    def _write_pod_event(self, name: str) -> None:
        """Writes it on the NodeClaim, where clients can see since when the node's room is unchanged."""
        touched, claim = self._touched.get(name), self._world.claim_of(name)
        if touched is None or claim is None or claim.condition("Initialized") != "True":
            return
        written = self._written.get(name)
        if written is not None and touched - written < DEDUPED:
            return
        self._written[name] = touched

        def write(copy: dict[str, Any]) -> None:
            copy["status"]["lastPodEventTime"] = stamp(touched)

        self._world.store.change(claim_ref(claim.name), write, MANAGER)

    def _check_at(self, name: str, time: datetime) -> None:
        planned = self._checks.get(name)
        if planned is None or time < planned:
            self._checks[name] = time
            self._world.at(time, lambda: self._check(name))

    def _due(self, name: str, pools: dict[str, NodePool]) -> datetime | None:
        """When the node may be removed; None while it may not."""
        node = self._world.node(name)
        claim = self._world.claim_of(name)
        if node is None or claim is None or claim.deleting or claim.condition("Initialized") != "True":
            return None
        pool = pools.get(claim.label(NODEPOOL_LABEL) or "")
        if pool is None or pool.replicas is not None or _is_protected(node, claim) or not self._world.is_empty(name):
            return None
        if _has_drifted(claim):
            return self._world.now
        if pool.consolidate_after is None:
            return None
        return self._touched.get(name, self._world.now) + pool.consolidate_after

    def _check(self, name: str) -> None:
        self._checks.pop(name, None)
        pools = self._world.node_pools()
        due = self._due(name, pools)
        if due is None:
            return
        if due > self._world.now:
            self._check_at(name, due)
            return
        claim = self._world.claim_of(name)
        assert claim is not None
        pool = pools[claim.label(NODEPOOL_LABEL) or ""]
        state = pool_state(pool.name, all_bins(self._world.views.view()))
        reason = DRIFTED if _has_drifted(claim) else EMPTY
        if allowed(pool, reason, state, self._world.now) == 0:
            self._check_at(name, self._looks_again(pool, reason, state))
            return
        why = "has drifted" if reason == DRIFTED else "is empty"
        self._world.record(
            Event(claim_ref(claim.name), "Normal", "DisruptionTerminating", f"{name} {why}: it is removed")
        )
        self._world.store.delete(claim_ref(claim.name))

    def _looks_again(self, pool: NodePool, reason: str, state: PoolState) -> datetime:
        """When to look again. Karpenter looks every ten seconds; if only the calendar can change the answer, once is enough."""
        now = self._world.now
        if state.disrupting or state.not_ready:
            return now + RETRY
        return budget_spans(pool, reason, state, now, now + LONGEST_WAIT)[0].end


def _has_drifted(claim: NodeClaim) -> bool:
    return claim.condition("Drifted") == "True"


def _is_protected(node: Node, claim: NodeClaim) -> bool:
    return "true" in (node.annotation(DO_NOT_DISRUPT), claim.annotation(DO_NOT_DISRUPT))
