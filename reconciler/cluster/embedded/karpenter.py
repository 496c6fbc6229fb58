"""The embedded cluster's Karpenter: the life of NodeClaims and what it writes on NodePools. Driven by World.

It simulates launch, registration, drain and removal, expiry, stock-outs, and drift as a condition. Nothing blocks a drain. Which nodes go for
drift or to save money is for `consolidation.py`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reconciler.cluster.embedded.store import Body, owner_reference, taint_rows
from reconciler.cluster.embedded.world import World
from reconciler.model.nodes import (
    DISRUPTED_TAINT,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    KARPENTER_GROUP,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    NodeClaim,
    node_claim_ref,
    node_pool_ref,
    node_ref,
)
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import single_valued

MANAGER = "karpenter"
FINALIZER = "karpenter.sh/termination"
HASH_VERSION = "v3"
"""The version of the hash in Karpenter 1.14 (NodePoolHashVersion). The hash only has to change when the template does."""


@dataclass(frozen=True, slots=True)
class Delays:
    """launch: from a NodeClaim to its instance. register: from there to a Ready, initialized node. drain: from a NodeClaim's
    deletion, when its pods are evicted, to the end of its node."""

    launch: timedelta = timedelta(seconds=2)
    register: timedelta = timedelta(seconds=3)
    drain: timedelta = timedelta(seconds=1)


def set_disrupted(world: World, node: str, *, disrupted: bool) -> None:
    """Keeps new pods off a node that is to go, or lets them come again."""

    def write(copy: dict[str, Any]) -> None:
        taints = [item for item in copy["spec"].get("taints", ()) if item["key"] != DISRUPTED_TAINT]
        own = [{"key": DISRUPTED_TAINT, "effect": "NoSchedule"}] if disrupted else []
        copy["spec"]["taints"] = [*taints, *own]

    world.store.change(node_ref(node), write, MANAGER)


class Karpenter:
    def __init__(self, world: World, delays: Delays) -> None:
        self._world = world
        self._delays = delays
        self._pools: set[str] = set()
        self._new: list[ObjectRef] = []

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        if ref.group != KARPENTER_GROUP and ref.kind != "Node":
            return
        match ref.kind:
            case "NodePool":
                self._pools.add(ref.name)
                if after is None:
                    self._world.at(self._world.now, lambda: self._delete_claims_of(ref.name))
            case "NodeClaim":
                if _told_to_pool(before) != _told_to_pool(after):
                    self._pools.add(_pool_of(after or before or {}))
                if before is None:
                    self._new.append(ref)
                elif after is not None and _is_deleting(after) and not _is_deleting(before):
                    self._drain(ref, after)
            case "Node":
                if after is not None and _is_deleting(after):
                    self._delete_claim_of(ref.name)

    def reconcile(self) -> None:
        new, self._new = self._new, []
        for ref in new:
            body = self._world.store.get(ref)
            if body is not None:
                self._begin(ref, body)
        pools, self._pools = sorted(self._pools), set()
        for name in pools:
            self._keep_pool(name)

    # NodePools

    def _keep_pool(self, name: str) -> None:
        ref = node_pool_ref(name)
        body = self._world.store.get(ref)
        if body is None:
            return
        claims = self._world.claims_in(name)
        marks = {NODEPOOL_HASH: pool_hash(body), NODEPOOL_HASH_VERSION: HASH_VERSION}
        capacity = Resources.total(claim.capacity for claim in claims).quantities()

        def write(copy: dict[str, Any]) -> None:
            copy["metadata"]["annotations"] = {**(copy["metadata"].get("annotations") or {}), **marks}
            self._world.set_condition(copy, "Ready", "True", "Ready")
            copy["status"]["resources"] = {**capacity, "nodes": str(len(claims))}

        self._world.store.change(ref, write, MANAGER)
        for claim in claims:
            self._judge_drift(claim, marks[NODEPOOL_HASH])

    def _delete_claims_of(self, pool: str) -> None:
        for claim in self._world.claims_in(pool):
            self._world.store.delete(node_claim_ref(claim.name))

    def _judge_drift(self, claim: NodeClaim, template: str) -> None:
        """Sets Drifted if it was made from another template. A claim without the hash annotations is not judged."""
        is_judged = claim.annotation(NODEPOOL_HASH_VERSION) == HASH_VERSION
        drifted = is_judged and claim.annotation(NODEPOOL_HASH) != template
        if drifted == any(kind == "Drifted" for kind, _ in claim.conditions):
            return

        def write(copy: dict[str, Any]) -> None:
            if drifted:
                self._world.set_condition(copy, "Drifted", "True", "NodePoolDrifted")
            else:
                rows = copy["status"]["conditions"]
                copy["status"]["conditions"] = [row for row in rows if row["type"] != "Drifted"]

        self._world.store.change(node_claim_ref(claim.name), write, MANAGER)

    # NodeClaims

    def _begin(self, ref: ObjectRef, body: Body) -> None:
        """Begins or continues a NodeClaim's life, since a snapshot may have it in the middle."""
        uid, world = body["metadata"]["uid"], self._world
        claim = world.node_claim(ref.name)
        if claim is None or claim.deleting:
            if claim is not None:
                self._drain(ref, body)
            return
        if claim.condition("Launched") != "True":
            world.at(world.now + self._delays.launch, lambda: self._launch(ref, uid))
        elif claim.condition("Initialized") != "True":
            world.at(world.now + self._delays.register, lambda: self._register(ref, uid))
        # Otherwise the snapshot is older than its nodes may become.
        if claim.expires is not None and claim.expires > world.now:
            world.at(claim.expires, lambda: self._expire(ref, uid))

    def _same(self, ref: ObjectRef, uid: str) -> NodeClaim | None:
        """The claim, if it is still the same object and not being deleted."""
        claim = self._world.node_claim(ref.name)
        return claim if claim is not None and claim.uid == uid and not claim.deleting else None

    def _launch(self, ref: ObjectRef, uid: str) -> None:
        claim = self._same(ref, uid)
        if claim is None:
            return
        labels = {**single_valued(claim.requirements), **dict(claim.labels)}
        found = self._world.market.purchases(claim.requirements, labels, claim.requests)
        if not found:
            self._world.store.remove(ref)  # as Karpenter does: nothing can be launched for it
            return
        purchase = found[0]

        def write(copy: dict[str, Any]) -> None:
            copy["metadata"]["labels"] = {**purchase.labels, **dict(claim.labels)}
            copy["metadata"]["finalizers"] = sorted({*copy["metadata"].get("finalizers", ()), FINALIZER})
            copy["status"] = {
                **(copy.get("status") or {}),
                "providerID": f"embedded://{purchase.offering.zone}/{ref.name}",
                "capacity": purchase.instance_type.capacity.quantities(),
                "allocatable": purchase.instance_type.allocatable.quantities(),
            }
            self._world.set_condition(copy, "Launched", "True", "Launched")
            for later in ("Registered", "Initialized", "Ready"):
                self._world.set_condition(copy, later, "Unknown", "AwaitingReconciliation")

        self._world.store.change(ref, write, MANAGER)
        self._world.at(self._world.now + self._delays.register, lambda: self._register(ref, uid))

    def _register(self, ref: ObjectRef, uid: str) -> None:
        claim = self._same(ref, uid)
        if claim is None:
            return
        name = f"node-{ref.name}"
        body = self._world.store.get(ref)
        assert body is not None
        self._world.store.create(node_ref(name), self._node(name, claim, body), MANAGER)

        def write(copy: dict[str, Any]) -> None:
            copy["status"] = {**copy["status"], "nodeName": name}
            for done in ("Registered", "Initialized", "Ready"):
                self._world.set_condition(copy, done, "True", done)

        self._world.store.change(ref, write, MANAGER)

    def _node(self, name: str, claim: NodeClaim, body: Body) -> dict[str, Any]:
        """The node, ready from the start and without startup taints: the steps between happen in this instant."""
        own = {HOSTNAME_LABEL: name, REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
        made: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "labels": {**dict(claim.labels), **own},
                "annotations": dict(body["metadata"].get("annotations") or {}),
                "finalizers": [FINALIZER],
                "ownerReferences": [
                    owner_reference(body["apiVersion"], "NodeClaim", claim.name, claim.uid, blockOwnerDeletion=True)
                ],
            },
            "spec": {"providerID": claim.provider_id, **taint_rows("taints", claim.taints)},
            "status": {
                "capacity": claim.capacity.quantities(),
                "allocatable": claim.allocatable.quantities(),
            },
        }
        self._world.set_condition(made, "Ready", "True", "KubeletReady")
        return made

    def _expire(self, ref: ObjectRef, uid: str) -> None:
        """Deletes an expired NodeClaim. Nothing protects a node from expiry."""
        if self._same(ref, uid) is not None:
            self._world.store.delete(ref)

    def _drain(self, ref: ObjectRef, body: Body) -> None:
        """Keeps new pods off, evicts all pods but daemons, and deletes node and claim a while later."""
        node = (body.get("status") or {}).get("nodeName") or ""
        world = self._world
        if world.store.get(node_ref(node)) is not None:
            set_disrupted(world, node, disrupted=True)
            world.at(world.now, lambda: self._evict(node, daemons=False))
        delay = self._delays.drain if node else timedelta(0)
        world.at(world.now + delay, lambda: self._end(ref, body["metadata"]["uid"], node))

    def _evict(self, node: str, *, daemons: bool) -> None:
        for pod in self._world.views.view().pods:
            if pod.node_name == node and (daemons or not pod.is_daemon):
                self._world.store.remove(ObjectRef("", "Pod", pod.namespace, pod.name))

    def _end(self, ref: ObjectRef, uid: str, node: str) -> None:
        if node:
            self._evict(node, daemons=True)
            self._world.store.remove(node_ref(node))
        claim = self._world.node_claim(ref.name)
        if claim is not None and claim.uid == uid:
            self._world.store.remove(ref)

    def _delete_claim_of(self, node: str) -> None:
        claim = self._world.claim_of(node)
        if claim is not None:
            self._world.store.delete(node_claim_ref(claim.name))
        else:
            self._world.at(self._world.now, lambda: self._end(node_claim_ref(""), "", node))


def pool_hash(pool: Body) -> str:
    """A hash of what a NodeClaim copies from the template, except requirements, whose drift Karpenter judges by labels."""
    template = pool.get("spec", {}).get("template") or {}
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key != "requirements"}
    text = json.dumps({"metadata": template.get("metadata") or {}, "spec": spec}, sort_keys=True)
    return str(int(hashlib.sha256(text.encode()).hexdigest()[:15], 16))


def _pool_of(body: Body) -> str:
    return str(((body.get("metadata") or {}).get("labels") or {}).get(NODEPOOL_LABEL, ""))


def _told_to_pool(claim: Body | None) -> Any:
    """The parts of a claim that its pool's usage and drift depend on."""
    if claim is None:
        return None
    annotations = claim["metadata"].get("annotations") or {}
    return ((claim.get("status") or {}).get("capacity"), annotations.get(NODEPOOL_HASH))


def _is_deleting(body: Body) -> bool:
    return "deletionTimestamp" in body["metadata"]
