"""Nodes that are up. From them the checker derives how many volumes and devices new nodes will have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.machines import Machine
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.placement.checker.checked_node import CheckedNode, is_initialized


class SampleNodes:
    def __init__(self, machines: Sequence[Machine]) -> None:
        self._up: set[str] = set()
        self._names: dict[tuple[str | None, str | None], list[str]] = {}
        for machine in machines:
            node = machine.node
            if node is not None and is_initialized(machine):
                self._up.add(node.name)
                pool, instance_type = machine.node_pool, machine.label(INSTANCE_TYPE_LABEL) or ""
                for key in ((pool, instance_type), (None, instance_type), (pool, None)):
                    self._names.setdefault(key, []).append(node.name)

    def is_up(self, node: str) -> bool:
        return node in self._up

    def names(self, *, pool: str | None = None, instance_type: str | None = None) -> Sequence[str]:
        """The nodes of that NodePool and type (None: any)."""
        return self._names.get((pool, instance_type), ())


def pools_and_types(node: CheckedNode) -> Iterable[tuple[str, str]]:
    """The pairs of NodePool and instance type that the node may have, "" for none."""
    pools, types = node.values(NODEPOOL_LABEL), node.values(INSTANCE_TYPE_LABEL)
    return ((pool or "", instance_type or "") for pool in pools for instance_type in types)
