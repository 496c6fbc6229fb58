"""Nodes that are up, as examples of those to come. Used by volumes and devices."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.nodes import INSTANCE_TYPE_LABEL
from reconciler.model.view import ClusterView
from reconciler.placement.checker.sites import OPEN, Site, is_initialized


class Examples:
    """Every node is walked once: whether it is up, and of what NodePool and type it is."""

    def __init__(self, view: ClusterView) -> None:
        self._up: set[str] = set()
        self._names: dict[tuple[str | None, str | None], list[str]] = {}
        for machine in view.machines:
            node = machine.node
            if node is None or not is_initialized(node, machine.node_claim):
                continue
            self._up.add(node.name)
            pool, kind = machine.node_pool, machine.label(INSTANCE_TYPE_LABEL) or ""
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
