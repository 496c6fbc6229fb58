"""Held nodes that are not ready for a moment: their chunks wait for them before other room is made.

What is on such a node does not count as provisioned. Since when it is not ready is written on the node itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.plan.bins import Bin


@dataclass(frozen=True, slots=True)
class Waiting:
    """names: of nodes whose chunks wait. until: when the first of them has waited long enough."""

    names: frozenset[str] = frozenset()
    until: datetime | None = None


def briefly_not_ready(bins: Iterable[Bin], now: datetime, grace: timedelta) -> Waiting:
    """now: by the cluster's clock. A node that has never been ready is on its way, which is another matter."""
    ends = {item.name: end for item in bins if (end := _end_of_grace(item, grace)) is not None and now < end}
    return Waiting(frozenset(ends), min(ends.values(), default=None))


def _end_of_grace(item: Bin, grace: timedelta) -> datetime | None:
    node = item.node
    if node is None or node.ready or node.ready_changed is None or not item.is_marked:
        return None
    return None if item.is_going or item.is_on_its_way or node.unschedulable else node.ready_changed + grace
