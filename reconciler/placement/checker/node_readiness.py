"""Chunks that must be on nodes that are ready now."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.placement.checker.checked_node import CheckedNode, is_initialized


def readiness_violations(node: CheckedNode) -> Iterable[str]:
    arriving = node.machine is not None and not is_initialized(node.machine)
    if arriving and any(item.demand is not None and item.demand.only_ready for item in node.occupants):
        yield f"{node.name}: is not up yet, and holds chunks that must fit now"
