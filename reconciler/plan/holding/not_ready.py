"""Held nodes that have just become not ready: their chunks wait a while before other room is made.

Chunks on such a node do not count as provisioned. The node's own condition says since when it is not ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.plan.bins import Bin


@dataclass(frozen=True, slots=True)
class WaitingNodes:
    """names: of nodes whose chunks wait. until: when the first of them has waited long enough."""

    names: frozenset[str] = frozenset()
    until: datetime | None = None


def briefly_not_ready(
    bins: Iterable[Bin], now: datetime, grace: timedelta, *, for_ever: frozenset[str] = frozenset()
) -> WaitingNodes:
    """now: by the cluster's clock. for_ever: names of nodes without a limit on the wait. A node that has never been ready is on its way,
    and does not count here."""
    since = {item.name: at for item in bins if (at := _not_ready_since(item)) is not None}
    ends = {name: at + grace for name, at in since.items() if name not in for_ever and now < at + grace}
    return WaitingNodes(frozenset(ends) | since.keys() & for_ever, min(ends.values(), default=None))


def _not_ready_since(item: Bin) -> datetime | None:
    node = item.node
    if node is None or node.ready or node.ready_changed is None or not item.is_marked:
        return None
    return None if item.is_going or item.is_on_its_way or node.unschedulable else node.ready_changed
