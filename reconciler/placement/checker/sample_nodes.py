"""Nodes that are up, from which the checker expects what nodes to come will attach and which devices they will have."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.placement.checker.checked_node import CheckedNode
from reconciler.placement.checker.machines import Machine


class SampleNodes:
    def __init__(self, machines: Sequence[Machine]) -> None:
        self._up: set[str] = set()
        self._names: dict[tuple[str | None, str | None], list[str]] = {}
        for machine in machines:
            node = machine.node
            if node is not None and machine.is_initialized:
                self._up.add(node.name)
                pool, instance_type = node.label(NODEPOOL_LABEL) or "", node.label(INSTANCE_TYPE_LABEL) or ""
                for key in ((pool, instance_type), (None, instance_type), (pool, None)):
                    self._names.setdefault(key, []).append(node.name)

    def is_up(self, node: str) -> bool:
        return node in self._up

    def names(self, *, pool: str | None = None, instance_type: str | None = None) -> Sequence[str]:
        """Of that NodePool and that type (None: any)."""
        return self._names.get((pool, instance_type), ())


def possible_types(node: CheckedNode) -> Sequence[str]:
    return [value or "" for value in node.values(INSTANCE_TYPE_LABEL)]
