"""Nodes that are up, as examples of those to come. Used by volumes and devices."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.model.view import ClusterView
from reconciler.placement.checker.sites import OPEN, Site


class Examples:
    """Every node is walked once: whether it is up, and of what NodePool and type it is."""

    def __init__(self, view: ClusterView) -> None:
        initialized: dict[str | None, bool] = {}
        for claim in view.node_claims:
            said = claim.condition("Initialized") == "True"
            initialized[claim.node_name] = initialized.get(claim.node_name, False) or said
        self._up: set[str] = set()
        self._names: dict[tuple[str | None, str | None], list[str]] = {}
        for node in view.nodes:
            made = node.name in initialized or node.label(NODEPOOL_LABEL) is not None
            if made and not initialized.get(node.name, False) and node.label(INITIALIZED_LABEL) != "true":
                continue
            self._up.add(node.name)
            pool, kind = node.label(NODEPOOL_LABEL) or "", node.label(INSTANCE_TYPE_LABEL) or ""
            for key in ((pool, kind), (None, kind), (pool, None), (None, None)):
                self._names.setdefault(key, []).append(node.name)

    def is_up(self, node: str) -> bool:
        """Of a node that Karpenter made: whether it has all it is going to have."""
        return node in self._up

    def names(self, *, pool: str | None = None, instance_type: str | None = None) -> Sequence[str]:
        """Nodes that are up, of that NodePool and that type (None: any)."""
        return self._names.get((pool, instance_type), ())


def possible_types(site: Site) -> Sequence[str]:
    value = site.labels.get(INSTANCE_TYPE_LABEL)
    return site.possible(INSTANCE_TYPE_LABEL) if value == OPEN else [value or ""]
