"""Launches that gave no node, in words: of which offering, and what is done about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from reconciler.model.changes import NodeClaimCreation, StockOut
from reconciler.model.demand import Demand
from reconciler.model.placement import Unplaced, read_holdings
from reconciler.model.refs import ObjectRef
from reconciler.plan.launching.back_offs import LaunchRecord, Offered

NOT_AVAILABLE = "offering not available"
AT_LIMIT = "NodePool limit"
"""Causes that placement gives."""


def stock_outs(
    launches: LaunchRecord,
    demands: Iterable[Demand],
    created: Sequence[NodeClaimCreation],
    unplaced: Iterable[Unplaced],
    now: datetime,
) -> tuple[StockOut, ...]:
    """One for each placeholder that vanished since the last pass. created, unplaced: what becomes of its chunks now."""
    if not launches.vanished:
        return ()
    by_name = {str(demand.ref): demand.ref for demand in demands}
    missing: dict[ObjectRef, set[str]] = {}
    for item in unplaced:
        missing.setdefault(item.demand, set()).update(reason.cause for reason in item.reasons)
    found = []
    for name, launch in sorted(launches.vanished.items()):
        held = sorted({by_name[words] for words, _ in read_holdings(launch.holds) if words in by_name})
        again = [item for item in created if any(holding.demand in held for holding in item.planned.holdings)]
        if again:
            then = f"instead it asks for {_offered_words(_offered(again[0]))}"
        elif not held or any(NOT_AVAILABLE in missing.get(demand, ()) for demand in held):
            then = retry_words(launches, now)
        elif any(demand in missing for demand in held):
            then = "there is no other place for its chunks now"
        else:
            then = "nothing is needed in its place"
        found.append(StockOut(tuple(held), f"NodeClaim {name} gave no node ({_offered_words(launch.offered)}): {then}"))
    return tuple(found)


def retry_words(launches: LaunchRecord, now: datetime) -> str:
    """When the first offering is tried again that gave no node; "" if no offering is left alone."""
    end = launches.next_end(now)
    return "" if end is None else f"tried again at {end.astimezone(UTC):%H:%M:%S} UTC"


def _offered(creation: NodeClaimCreation) -> Offered:
    planned = creation.planned
    return Offered(planned.instance_types, planned.zones, planned.capacity_types)


def _offered_words(offered: Offered) -> str:
    first, *others = offered.instance_types or ("any type",)
    more = f" or {len(others)} others" if len(others) > 1 else f" or {others[0]}" if others else ""
    return f"{first}{more} in {' or '.join(offered.zones)} as {' or '.join(offered.capacity_types)}"
