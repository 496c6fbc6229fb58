"""Buffers that are a share of running pods: what the inventory remembers of their sizes, and when one shrinks by the clock alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from reconciler.model.autoscalers import CAPACITY_BUFFER_KIND
from reconciler.model.buffers import SHARES_KEY, remembered_shares, share_key
from reconciler.model.demand import Demand
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView


def shares_memory(demands: Iterable[Demand], view: ClusterView) -> dict[str, Any]:
    """JSON values, unchanged as long as no share changes. One entry for each such buffer; one that is not ready keeps what it had."""
    known = remembered_shares(view.inventory.memory)
    entries = {}
    for demand in demands:
        key = share_key(demand.ref)
        if demand.share is not None:
            entries[key] = demand.share.as_json()
        elif demand.ref.kind == CAPACITY_BUFFER_KIND and demand.desired is None and key in known:
            entries[key] = known[key].as_json()
    return {SHARES_KEY: dict(sorted(entries.items()))} if entries else {}


def share_edges(demands: Iterable[Demand], clock_skew: timedelta) -> tuple[Edge, ...]:
    """Instants by this machine's clock. clock_skew: that clock's time less the cluster's."""
    return tuple(
        Edge(demand.shrinks_at + clock_skew, f"{demand.ref}: its share of running pods has been less for long enough")
        for demand in demands
        if demand.shrinks_at is not None
    )
