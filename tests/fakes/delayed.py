"""The embedded cluster, seen through watches of which one is behind the others: each kind of object is watched by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.changes import Write, WriteResult
from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL, UNREGISTERED_TAINT, Node
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster

NODES, NODE_CLAIMS = "nodes", "node_claims"
_PARTS = {"Node": NODES, "NodeClaim": NODE_CLAIMS}
_UNREGISTERED = Taint(UNREGISTERED_TAINT, "", "NoExecute")


@dataclass(slots=True)
class DelayedCluster:
    """Some parts of its views stay as they were. What the client itself wrote is seen: a view waits for that.

    behind: how many objects of a part, the last by name, are seen as they were when the part was seen in full for the last time.
    young: nodes whose NodeClaim says nothing of them yet are seen as they were before Karpenter registered them.
    is_cut_off: the watches of both broke before they told of anything, and a gap says so.
    """

    cluster: Cluster
    behind: dict[str, int] = field(default_factory=dict)
    young: bool = False
    is_cut_off: bool = False
    _full: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def view(self) -> ClusterView:
        view = self.cluster.view()
        for part in (NODES, NODE_CLAIMS):
            if part not in self.behind or part not in self._full:
                self._full[part] = getattr(view, part)
        parts: dict[str, Any] = {
            part: _partly(getattr(view, part), old, self.behind.get(part, 0)) for part, old in self._full.items()
        }
        seen = replace(view, **parts)
        if self.young:
            told = {claim.provider_id for claim in seen.node_claims}
            seen = replace(
                seen, nodes=tuple(node if node.provider_id in told else _unregistered(node) for node in seen.nodes)
            )
        if self.is_cut_off:
            gaps = ("nodeclaims cannot be read: the connection was lost",)
            unread = frozenset({"Node", "NodeClaim"})
            seen = replace(seen, nodes=(), node_claims=(), complete=False, gaps=gaps, unread=unread)
        return seen

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        result = self.cluster.write(write, dry_run=dry_run)
        if result.ok and not dry_run:
            self._full.pop(_PARTS.get(write.ref.kind, ""), None)
        return result


def _partly(new: Sequence[Any], old: Sequence[Any], behind: int) -> tuple[Any, ...]:
    """The last objects by name as they were, if they were there."""
    first = len(new) - behind
    return (*new[: max(0, first)], *old[max(0, first) :]) if behind else tuple(new)


def _unregistered(node: Node) -> Node:
    labels = tuple(item for item in node.labels if item[0] not in {REGISTERED_LABEL, INITIALIZED_LABEL})
    return replace(node, labels=labels, taints=(*node.taints, _UNREGISTERED), ready=False, node_claim_uid="")
