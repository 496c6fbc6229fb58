"""Nodes that hold chunks of suspended buffers: headroom moves nothing away from them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class SuspendedBins:
    """Names of nodes (of NodeClaims, where there is no node yet). some: nodes that hold such chunks; only: nodes that hold nothing else."""

    some: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()


def suspended_bins(view: ClusterView, suspended: Collection[ObjectRef]) -> SuspendedBins:
    names = {str(ref) for ref in suspended}
    if not names:
        return SuspendedBins()
    held = {item.name: item.holders for item in view.machines if item.is_held}
    return SuspendedBins(
        frozenset(name for name, demands in held.items() if not names.isdisjoint(demands)),
        frozenset(name for name, demands in held.items() if demands and demands <= names),
    )
