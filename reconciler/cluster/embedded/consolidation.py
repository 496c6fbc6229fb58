"""The embedded cluster's consolidation: removes empty nodes, and nodes whose pods can be had for less. Driven by World.

A node is empty if it has only daemon pods. It is removed `consolidateAfter` after its last pod event (or its initialization), within
the pool's budgets for Empty. `karpenter.sh/do-not-disrupt` on it or its NodeClaim prevents that.

A node with pods goes, within the budgets for Underutilized, when they fit on other nodes, or on those and one cheaper new node. That node
comes first. A node that has drifted goes at once, within the budgets for Drifted, whatever the new one costs. As in Karpenter, no pod moves
to a node with a taint of any effect that it does not tolerate. Spot is not replaced by spot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from reconciler.cluster.embedded.karpenter import MANAGER, set_disrupted
from reconciler.cluster.embedded.provisioner import ON_ITS_WAY, VALIDATED, Coming, Provisioner, to_be_made
from reconciler.cluster.embedded.store import Body
from reconciler.cluster.embedded.world import World
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
    NodePool,
    node_claim_ref,
)
from reconciler.model.pods import Pod, is_kept
from reconciler.model.quantity import Resources, time_text
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.plan.bins import all_bins
from reconciler.plan.node_pools.budget_timeline import budget_spans
from reconciler.plan.node_pools.disruption_budgets import DRIFTED, EMPTY, UNDERUTILIZED, PoolState, allowed, pool_state

RETRY = timedelta(seconds=10)
"""How often Karpenter looks again when a budget was used up."""
LOOK_AGAIN = timedelta(seconds=15)
"""When a node with pods is looked at again, since room elsewhere comes and goes."""
LONGEST_WAIT = timedelta(days=1)
DEDUPED = timedelta(seconds=10)
"""Pod events of a node that are closer together are written once, as in Karpenter (controllers/nodeclaim/podevents)."""


class Consolidation:
    def __init__(self, world: World, provisioner: Provisioner) -> None:
        self._world = world
        self._provisioner = provisioner
        self._replacements: dict[str, list[str]] = {}
        self._touched: dict[str, datetime] = {}
        self._dirty: set[str] = set()
        self._checks: dict[str, datetime] = {}
        self._written: dict[str, datetime] = {}
        self._looked: dict[str, datetime] = {}

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
        self._finish_replacements()
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
            copy["status"]["lastPodEventTime"] = time_text(touched)

        self._world.store.change(node_claim_ref(claim.name), write, MANAGER)

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
        if pool is None or pool.replicas is not None or _is_protected(node, claim):
            return None
        drifted, empty_only = _has_drifted(claim), pool.consolidation_policy == "WhenEmpty"
        if not self._world.is_empty(name) and (name in self._replacements or (empty_only and not drifted)):
            return None
        if drifted:
            return self._world.now
        if pool.consolidate_after is None:
            return None
        return self._touched.get(name, self._world.now) + pool.consolidate_after

    def _check(self, name: str) -> None:
        self._checks.pop(name, None)
        pools = self._world.node_pools()
        due, empty = self._due(name, pools), self._world.is_empty(name)
        if due is not None and not empty:
            due = max(due, self._looked.setdefault(name, max(due, self._world.now)) + VALIDATED)
        else:
            self._looked.pop(name, None)
        if due is None:
            return
        if due > self._world.now:
            self._check_at(name, due)
            return
        self._looked.pop(name, None)
        claim = self._world.claim_of(name)
        assert claim is not None
        pool = pools[claim.label(NODEPOOL_LABEL) or ""]
        state = pool_state(pool.name, all_bins(self._world.views.view()))
        reason = DRIFTED if _has_drifted(claim) else EMPTY if empty else UNDERUTILIZED
        if not empty:
            if allowed(pool, reason, state, self._world.now) != 0 and not self._replacements:
                self._consolidate(name, claim)
            claim = self._world.claim_of(name)
            if name not in self._replacements and claim is not None and not claim.deleting:
                self._check_at(name, self._world.now + LOOK_AGAIN)
            return
        if allowed(pool, reason, state, self._world.now) == 0:
            self._check_at(name, self._looks_again(pool, reason, state))
            return
        self._world.store.delete(node_claim_ref(claim.name))

    def _consolidate(self, name: str, claim: NodeClaim) -> None:
        """Removes the node if its pods fit elsewhere. Otherwise makes a cheaper node for those that do not; any number, if it has drifted."""
        view = self._world.views.view()
        pods = [pod for pod in view.pods if pod.node_name == name and not pod.is_daemon]
        if any(pod.deleting or is_kept(pod, self._world.now) for pod in pods):
            return
        left = self._without_room(name)
        if left is None:
            return
        if not left:
            self._remove(name, claim)
            return
        nodes = self._provisioner.nodes_for(left)
        if not _has_drifted(claim):
            nodes = _cheaper(nodes, self._price(name), spot=claim.label(CAPACITY_TYPE_LABEL) != "spot")
        if nodes and self._without_room(name, list(map(to_be_made, nodes, count()))) == []:
            self._replacements[name] = [self._provisioner.make(node) for node in nodes]
            set_disrupted(self._world, name, disrupted=True)

    def _without_room(self, name: str, new: Sequence[Node] = ()) -> list[Pod] | None:
        """The pods that would lose their place once the node is gone. new: nodes that are there beside the others.

        None if one of its pods would come to a node that is not initialized. Then Karpenter leaves the node for now
        (SimulateScheduling in pkg/controllers/disruption/helpers.go)."""
        empty = (node.name for node in self._world.views.view().nodes if self._is_empty_and_due(node.name))
        places = [item for item in self._provisioner.places({name, *empty}, new) if item[0].node_name is not None]
        if any(node is not None and pod.node_name == name and ON_ITS_WAY in node.taints for pod, node in places):
            return None
        return [pod for pod, node in places if node is None]

    def _is_empty_and_due(self, name: str) -> bool:
        """Whether it is about to be removed: Karpenter removes empty nodes before it moves any pods."""
        due = self._due(name, self._world.node_pools()) if self._world.is_empty(name) else None
        return due is not None and due <= self._world.now

    def _price(self, name: str) -> float:
        node = self._world.node(name)
        labels = {} if node is None else dict(node.labels)
        requirements = [
            Requirement(key, Operator.IN, (labels[key],))
            for key in (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
            if key in labels
        ]
        sold = self._world.market.purchases(requirements, {}, Resources(), in_stock=False)
        return sold[0].offering.price if sold else 0.0

    def _finish_replacements(self) -> None:
        """Removes a node once its replacements are initialized. One that vanished replaces nothing."""
        for name, replacements in list(self._replacements.items()):
            coming, claim = [self._world.node_claim(item) for item in replacements], self._world.claim_of(name)
            if claim is None or any(item is None or item.deleting for item in coming):
                del self._replacements[name]
                if claim is not None and not claim.deleting:
                    set_disrupted(self._world, name, disrupted=False)
                self._dirty.add(name)
            elif all(item is not None and item.condition("Initialized") == "True" for item in coming):
                del self._replacements[name]
                self._remove(name, claim)

    def _remove(self, name: str, claim: NodeClaim) -> None:
        node = self._world.node(name)
        if node is None or _is_protected(node, claim):
            return
        self._world.store.delete(node_claim_ref(claim.name))

    def _looks_again(self, pool: NodePool, reason: str, state: PoolState) -> datetime:
        """When to look again. Karpenter looks every ten seconds; if only the calendar can change the answer, once is enough."""
        now = self._world.now
        if state.disrupting or state.not_ready:
            return now + RETRY
        return budget_spans(pool, reason, state, now, now + LONGEST_WAIT)[0].end


def _has_drifted(claim: NodeClaim) -> bool:
    return claim.condition("Drifted") == "True"


def _cheaper(nodes: Sequence[Coming], price: float, *, spot: bool) -> list[Coming]:
    """One node that costs less; none if there are several, since Karpenter replaces no node by several to save money."""
    one = nodes[0] if len(nodes) == 1 else None
    offered = () if one is None else one.ways
    ways = [way for way in offered if way.offering.price < price and (spot or way.offering.capacity_type != "spot")]
    return [replace(one, ways=ways)] if one is not None and ways else []


def _is_protected(node: Node, claim: NodeClaim) -> bool:
    return "true" in (node.annotation(DO_NOT_DISRUPT), claim.annotation(DO_NOT_DISRUPT))
