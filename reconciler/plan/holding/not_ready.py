"""Held nodes that are not ready for a moment: their chunks wait for them before other room is made.

What is on such a node does not count as provisioned. Since when it is not ready is written on the node itself.
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
    """now: by the cluster's clock. for_ever: names of those that are waited for however long it takes. A node that has never been ready
    is on its way, which is another matter."""
    since = {item.name: at for item in bins if (at := _not_ready_since(item)) is not None}
    ends = {name: at + grace for name, at in since.items() if name not in for_ever and now < at + grace}
    return WaitingNodes(frozenset(ends) | since.keys() & for_ever, min(ends.values(), default=None))


def _not_ready_since(item: Bin) -> datetime | None:
    node = item.node
    if node is None or node.ready or node.ready_changed is None or not item.is_marked:
        return None
    return None if item.is_going or item.is_on_its_way or node.unschedulable else node.ready_changed
