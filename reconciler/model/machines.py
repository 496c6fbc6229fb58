"""The machines of a cluster: each node joined with the NodeClaim it was launched from, by Karpenter's own rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from reconciler.model.nodes import (
    HOLDS_ANNOTATION,
    INITIALIZED_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    UNREGISTERED_TAINT,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.placement import read_holdings
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint

_name = attrgetter("name")
_PASSING = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (UNREGISTERED_TAINT, "NoExecute"),
    }
)
_PASSING_PREFIX = "readiness.k8s.io/"
"""Taints that a node loses once it is up (Karpenter's pkg/scheduling/taints.go)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of the cluster, with a node, a NodeClaim, or both.

    node: None while the machine has not joined the cluster, and once its node is gone.
    node_claim: None where Karpenter did not make the node.
    """

    node: Node | None
    node_claim: NodeClaim | None

    @property
    def name(self) -> str:
        """The node's name, or the NodeClaim's while there is no node."""
        side = self.node or self.node_claim
        assert side is not None
        return side.name

    @property
    def sides(self) -> tuple[Node | NodeClaim, ...]:
        """Node and NodeClaim, as far as they are there."""
        return tuple(side for side in (self.node, self.node_claim) if side is not None)

    @property
    def node_pool(self) -> str:
        """The name of the NodePool that it belongs to, "" for none."""
        return self.label(NODEPOOL_LABEL) or ""

    def label(self, key: str) -> str | None:
        """The label's value, the node's first, by which kube-scheduler and Karpenter go. Until the node is registered, the NodeClaim's
        first: Karpenter copies its labels to the node then (`StateNode.Labels` in pkg/controllers/state/statenode.go)."""
        first, second = (self.node_claim, self.node) if self.awaits_registration else (self.node, self.node_claim)
        found = None if first is None else first.label(key)
        return found if found is not None or second is None else second.label(key)

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted or drained, for any reason."""
        return any(side.deleting for side in self.sides) or (self.node is not None and self.node.is_disrupted)

    @property
    def is_held(self) -> bool:
        """Whether the node or the NodeClaim has headroom's mark."""
        return any(side.is_held for side in self.sides)

    @property
    def held_for(self) -> str:
        """What it holds, by its `headroom.dev/holds` annotation. The node's is newer than the NodeClaim's.

        "" once it is released, even if the annotation is still there: chunks that have left must not be drawn back.
        """
        found = (side.annotation(HOLDS_ANNOTATION) for side in self.sides) if self.is_held else ()
        return next((words for words in found if words), "")

    @property
    def holders(self) -> frozenset[str]:
        """The demands that it holds chunks of, each by its reference as text."""
        return frozenset(demand for demand, _ in read_holdings(self.held_for))

    @property
    def is_initialized(self) -> bool:
        """Whether its node is complete. A node that Karpenter did not make is, from the start."""
        node, claim = self.node, self.node_claim
        if node is None:
            return False
        if claim is None and node.label(NODEPOOL_LABEL) is None:
            return True
        return node.label(INITIALIZED_LABEL) == "true" or (
            claim is not None and claim.condition("Initialized") == "True"
        )

    @property
    def allocatable(self) -> Resources:
        """What pods may request there, as far as it is known. Until the node is initialized, the NodeClaim fills the gaps, since devices are
        reported late."""
        promised = Resources() if self.node_claim is None or self.is_initialized else self.node_claim.allocatable
        reported = Resources() if self.node is None else self.node.allocatable
        return Resources.of(dict(promised) | dict(reported)) if promised else reported

    @property
    def why_closed(self) -> str:
        """Why no pod will be sent there any more, in words that begin with "is"; "" when there is no reason."""
        if any(side.deleting for side in self.sides):
            return "is being deleted"
        if self.node is None:
            return ""
        return "is being disrupted" if self.node.is_disrupted else "is cordoned" if self.node.unschedulable else ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its node, with those of its NodeClaim until these are copied to the node."""
        own = dict(self.node.labels) if self.node is not None else {}
        return own | dict(self.node_claim.labels) if self.node_claim is not None and self.awaits_registration else own

    def lasting_taints(self, pools: Mapping[str, NodePool]) -> tuple[Taint, ...]:
        """The taints that it will have once it is registered and initialized.

        Startup taints go, and so do those that Kubernetes and Karpenter give every new node. Those of its NodeClaim come.
        """
        node, claim = self.node, self.node_claim
        if node is None:
            return claim.taints if claim is not None else ()
        if self.is_initialized:
            return node.taints
        pool = pools.get(self.node_pool)
        startup = (
            claim.startup_taints if claim is not None else pool.template.startup_taints if pool is not None else ()
        )
        going = {(taint.key, taint.effect) for taint in startup} | _PASSING
        lasting = (
            taint
            for taint in node.taints
            if (taint.key, taint.effect) not in going and not taint.key.startswith(_PASSING_PREFIX)
        )
        return tuple(
            dict.fromkeys((*lasting, *(claim.taints if claim is not None and self.awaits_registration else ())))
        )

    @property
    def awaits_registration(self) -> bool:
        """Whether the node has joined the cluster, but Karpenter has not copied the NodeClaim's labels and taints to it yet."""
        node, claim = self.node, self.node_claim
        if node is None or claim is None or claim.node_name is not None:
            return False
        return claim.condition("Registered") != "True" and node.label(REGISTERED_LABEL) != "true"


def joined_machines(nodes: Iterable[Node], node_claims: Iterable[NodeClaim]) -> tuple[Machine, ...]:
    """Nodes by name, each with its NodeClaim, then NodeClaims without a node by name.

    A NodeClaim belongs to the node with its `status.providerID`. Karpenter joins by nothing else, so two different providerIDs are
    two machines, whatever `status.nodeName` says. While either has no providerID, `status.nodeName` decides. While the NodeClaim
    has neither, the node's owner reference does.

    Nodes and NodeClaims are watched separately, so a node may be seen while its NodeClaim still looks as it did before the launch.
    Until the node is registered, nothing tells which of the pool's NodeClaims it belongs to. A node is left out while an unmatched
    NodeClaim might be its own, since both would be one machine.

    Every other node is a machine, since kube-scheduler binds pods to each of two nodes that share a providerID. Their NodeClaim
    goes with the node that it names, otherwise with the first by name.

    Of several NodeClaims of one machine only one counts, so that the machine is not counted twice. One that matches by
    providerID is preferred, then one being deleted (the machine goes with it), then the first by name.
    """
    by_name = sorted(nodes, key=_name)
    found = _NodeIndex(by_name)
    claim_of: dict[str, NodeClaim] = {}
    others: list[NodeClaim] = []
    for claim in sorted(node_claims, key=_name):
        node = found.node_of(claim)
        if node is None:
            others.append(claim)
        elif node.name not in claim_of or _preference(claim, node) < _preference(claim_of[node.name], node):
            claim_of[node.name] = claim
    early = _early_nodes((node for node in by_name if node.name not in claim_of), others)
    machines = [Machine(node, claim_of.pop(node.name, None)) for node in by_name if node.name not in early]
    return (*machines, *(Machine(None, claim) for claim in _one_per_machine(others)))


def _early_nodes(alone: Iterable[Node], without_node: Iterable[NodeClaim]) -> frozenset[str]:
    """The names of nodes whose NodeClaim does not show its launch yet. Both arguments: by name, and not joined so far."""
    launching = Counter(
        claim.label(NODEPOOL_LABEL) or "" for claim in without_node if not (claim.provider_id or claim.node_name)
    )
    early = []
    for node in alone if launching else ():
        pool = node.label(NODEPOOL_LABEL) or ""
        registered = node.label(REGISTERED_LABEL) == "true"
        if launching[pool] and not registered and any(taint.key == UNREGISTERED_TAINT for taint in node.taints):
            launching[pool] -= 1
            early.append(node.name)
    return frozenset(early)


class _NodeIndex:
    def __init__(self, nodes: Sequence[Node]) -> None:
        """nodes: sorted by name."""
        self._by_name: Mapping[str, Node] = {node.name: node for node in nodes}
        self._by_provider_id: dict[str, Node] = {}
        self._by_owner: dict[str, Node] = {}
        for node in nodes:
            if node.provider_id:
                self._by_provider_id.setdefault(node.provider_id, node)
            if node.node_claim_uid:
                self._by_owner.setdefault(node.node_claim_uid, node)

    def node_of(self, claim: NodeClaim) -> Node | None:
        if not claim.provider_id and not claim.node_name:
            return self._by_owner.get(claim.uid)
        named = self._by_name.get(claim.node_name or "")
        if not claim.provider_id or (named is not None and named.provider_id == claim.provider_id):
            return named
        matching = self._by_provider_id.get(claim.provider_id)
        if matching is None and named is not None and not named.provider_id:
            return named
        return matching


def _preference(claim: NodeClaim, node: Node) -> tuple[bool, bool]:
    """The sort key: the NodeClaim with the least counts; of equals the first by name."""
    matches = bool(claim.provider_id) and claim.provider_id == node.provider_id
    return (not matches, not claim.deleting)


def _one_per_machine(claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """One NodeClaim for each providerID, since those that share one are one machine. claims: without a node, by name."""
    kept: dict[str, NodeClaim] = {}
    for claim in claims:
        key = f"id {claim.provider_id}" if claim.provider_id else f"name {claim.name}"
        earlier = kept.get(key)
        if earlier is None or (claim.deleting and not earlier.deleting):
            kept[key] = claim
    return sorted(kept.values(), key=_name)
