"""The embedded cluster's static NodePools: as many nodes as `spec.replicas` says, whatever pods there are. Driven by World.

As under Karpenter's StaticCapacity gate, missing nodes are made at once. If there are too many, claims without an instance go first,
then empty nodes, and nodes with do-not-disrupt pods last. `limits.nodes` limits the size.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from reconciler.cluster.embedded.karpenter import MANAGER, claim_ref
from reconciler.cluster.embedded.market import single_valued
from reconciler.cluster.embedded.provisioner import Coming, daemons_on, planned_claim
from reconciler.cluster.embedded.store import Body
from reconciler.cluster.embedded.world import World
from reconciler.model.nodes import DO_NOT_DISRUPT, NODEPOOL_LABEL, NodeClaim, NodePool
from reconciler.model.refs import ObjectRef

RETRY = timedelta(seconds=10)
"""How long a pool waits after it lost a node or a launch failed."""


class StaticPools:
    def __init__(self, world: World) -> None:
        self._world = world
        self._dirty: set[str] = set()
        self._made = 0

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        if ref.kind == "NodePool" and after is not None:
            self._dirty.add(ref.name)
        elif ref.kind == "NodeClaim" and before is not None and after is None:
            pool = (before["metadata"].get("labels") or {}).get(NODEPOOL_LABEL, "")
            self._world.at(self._world.now + RETRY, lambda: self._keep(pool))

    def reconcile(self) -> None:
        dirty, self._dirty = sorted(self._dirty), set()
        for name in dirty:
            self._keep(name)

    def _keep(self, name: str) -> None:
        pool = self._world.node_pools().get(name)
        if pool is None or pool.replicas is None or pool.deleting:
            return
        claims = [
            claim
            for claim in self._world.views.view().node_claims
            if claim.label(NODEPOOL_LABEL) == name and not claim.deleting
        ]
        wanted = min(pool.replicas, dict(pool.limits or ()).get("nodes", pool.replicas))
        for _ in range(wanted - len(claims)):
            self._make(pool)
        for claim in sorted(claims, key=self._cost)[: max(0, len(claims) - wanted)]:
            self._world.store.delete(claim_ref(claim.name))

    def _make(self, pool: NodePool) -> None:
        template = pool.template
        labels = {**single_valued(template.requirements), **dict(template.labels), NODEPOOL_LABEL: pool.name}
        daemons = daemons_on(self._world, labels, template.taints)
        ways = self._world.market.purchases(template.requirements, labels, daemons)
        if not ways:
            self._world.at(self._world.now + RETRY, lambda: self._keep(pool.name))
            return
        self._made += 1
        name = f"{pool.name}-{hashlib.sha256(f'static {pool.uid} {self._made}'.encode()).hexdigest()[:5]}"
        self._world.store.create(claim_ref(name), planned_claim(Coming(pool, list(ways), daemons)), MANAGER)

    def _cost(self, claim: NodeClaim) -> tuple[bool, int, str]:
        """The sort key of removal: the lowest goes first."""
        if not claim.node_name:
            return (False, 0, claim.name)
        pods = [pod for pod in self._world.views.view().pods if pod.node_name == claim.node_name and not pod.is_daemon]
        kept = any(name == DO_NOT_DISRUPT for pod in pods for name, _ in pod.annotations)
        return (kept, 1 + len(pods), claim.name)
