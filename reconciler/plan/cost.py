"""What the cluster costs an hour before and after a plan, in USD.

A node is priced by its labels. An unknown price is never guessed: an assumption says that it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from reconciler.model.changes import Cost, NodeClaimChanges, StaticPoolChange
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.refs import abridged, counted
from reconciler.model.requirements import listed_values
from reconciler.plan.bins import Bin
from reconciler.plan.node_pools.static_pools import leaving

SPOT = "spot"
_MOST_NAMES = 5


class Prices:
    """Prices of bins, from the offerings of the catalog."""

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self._offerings = {kind.name: kind.offerings for kind in instance_types}
        self._known: dict[int, tuple[Bin, float | None]] = {}

    def of(self, item: Bin) -> float | None:
        """USD an hour; None when its labels do not lead to exactly one price."""
        entry = self._known.get(id(item))  # keeps the bin alive, so that no other can get its id
        if entry is None:
            entry = self._known[id(item)] = (item, self._of(item))
        return entry[1]

    def _of(self, item: Bin) -> float | None:
        kind = item.label(INSTANCE_TYPE_LABEL)
        if kind is None:
            return self._asked_for(item)
        zone, capacity_type = item.label(ZONE_LABEL), item.label(CAPACITY_TYPE_LABEL)
        prices = {
            offering.price if offering.price_known else None
            for offering in self._offerings.get(kind, ())
            if zone in {None, offering.zone} and capacity_type in {None, offering.capacity_type}
        }
        return prices.pop() if len(prices) == 1 else None

    def _asked_for(self, item: Bin) -> float | None:
        """Of a NodeClaim that is not launched yet: the cheapest offering that it asks for, as when it was planned."""
        if item.node_claim is None:
            return None
        asked = listed_values(item.node_claim.requirements)
        prices = [
            offering.price if offering.price_known else None
            for kind in asked.get(INSTANCE_TYPE_LABEL, ())
            for offering in self._offerings.get(kind, ())
            if offering.zone in asked.get(ZONE_LABEL, (offering.zone,))
            and offering.capacity_type in asked.get(CAPACITY_TYPE_LABEL, (offering.capacity_type,))
        ]
        known_prices = [price for price in prices if price is not None]
        return min(known_prices) if known_prices and len(known_prices) == len(prices) else None


def cost_of(
    bins: Sequence[Bin],
    prices: Prices,
    changes: NodeClaimChanges,
    *,
    static: Sequence[StaticPoolChange] = (),
    assumptions: Iterable[str],
) -> Cost:
    """Before counts every node and NodeClaim. After counts planned nodes too, and leaves out nodes that are being removed.

    Released nodes that nothing runs on count as removed, because Karpenter removes them.
    static: nodes that Karpenter makes and deletes by itself when static NodePools change size.
    """
    deletions = {action.node or action.node_claim for action in changes.delete}
    releases = {action.node or action.node_claim for action in changes.release}
    leavers = frozenset[str]().union(*(leaving(change, bins) for change in static))
    before: list[float] = []
    after: list[float] = [creation.planned.price for creation in changes.create if creation.planned.price_known]
    unknown = [creation.name for creation in changes.create if not creation.planned.price_known]
    going = emptied = 0
    for item in bins:
        price = prices.of(item)
        if price is None:
            unknown.append(item.name)
            continue
        before.append(price)
        names = {side.name for side in item.sides}
        if item.is_going:
            going += 1
        elif names & releases and not item.in_use and item.is_placeholder:
            emptied += 1
        elif not names & deletions and item.name not in leavers:
            after.append(price)
    after.append(fsum((change.price or 0.0) * max(0, change.after - change.before) for change in static))
    notes = [*assumptions, *map(_static_note, static)]
    if any(item.label(CAPACITY_TYPE_LABEL) == SPOT for item in bins) or any(
        SPOT in creation.planned.capacity_types for creation in changes.create
    ):
        notes.append("spot prices are those of the price source; they change")
    if emptied:
        paid = f"counted as gone, paid for until Karpenter removes {'it' if emptied == 1 else 'them'}"
        notes.append(f"{counted(emptied, 'node')} released and empty: {paid}")
    if going:
        notes.append(f"{counted(going, 'node')} already on the way out: counted before, not after")
    if unknown:
        which = abridged(unknown, _MOST_NAMES)
        notes.append(f"{counted(len(unknown), 'node')} without a known price, not counted: {which}")
    return Cost(fsum(before), fsum(after), assumptions=tuple(dict.fromkeys(note for note in notes if note)))


def _static_note(change: StaticPoolChange) -> str:
    count = abs(change.after - change.before)
    words = f"{counted(count, 'node')} of static NodePool {change.node_pool}"
    if change.after < change.before:
        which = "" if change.after == 0 else ": empty ones are counted as going first"
        return f"{words} will go, paid for until Karpenter has deleted {'it' if count == 1 else 'them'}{which}"
    if change.price is None:
        return f"{words} will come, not counted: it admits no type with a known price"
    each = "" if count == 1 else " each"
    return f"{words} will come, counted as {change.instance_type}{each}: the cheapest type that it admits"
