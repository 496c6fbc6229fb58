"""Nodes and NodeClaims joined: each machine of the cluster once."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.nodes import INITIALIZED_LABEL, NODEPOOL_LABEL, Node, NodeClaim
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class Machine:
    """node None: the NodeClaim has not come up yet; claim None: Karpenter did not make the node, or its NodeClaim is gone."""

    node: Node | None
    claim: NodeClaim | None

    @property
    def name(self) -> str:
        return self.node.name if self.node else self.claim.name if self.claim else ""

    def label(self, key: str) -> str | None:
        """The node's own where it has one: a node that is coming up may lack labels that its NodeClaim has."""
        own = self.node.label(key) if self.node else None
        return self.claim.label(key) if own is None and self.claim else own

    @property
    def is_initialized(self) -> bool:
        """Whether the node has all that it will have. A node that Karpenter did not make has it from the start."""
        if self.node is None:
            return False
        managed = self.claim is not None or self.node.label(NODEPOOL_LABEL) is not None
        said = self.claim is not None and self.claim.condition("Initialized") == "True"
        return not managed or said or self.node.label(INITIALIZED_LABEL) == "true"


def machines_of(cluster: ClusterView) -> list[Machine]:
    """Joined by `status.nodeName`, or by the provider's ID while the NodeClaim does not name its node yet."""
    nodes = {node.name: node for node in reversed(cluster.nodes)}
    names = {node.provider_id: node.name for node in cluster.nodes if node.provider_id}
    claims: dict[str, NodeClaim] = {}
    arriving = []
    for claim in cluster.node_claims:
        name = claim.node_name or names.get(claim.provider_id, "")
        if name in nodes:
            claims.setdefault(name, claim)
        else:
            arriving.append(Machine(None, claim))
    return [*(Machine(node, claims.get(name)) for name, node in nodes.items()), *arriving]
