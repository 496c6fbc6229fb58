"""Checks how much of each demand may come to stand on spot nodes of one offering. Used by checker; shares nothing with the engine
but the meaning of the share.

Every node counts at all that it is or may become. What is over the share must be said, with its numbers, or it is a violation;
and where no new node is at the fullest offering, it could not be helped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import product

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.spot import SPOT, most_on_one_offering
from reconciler.placement.checked_sites import OPEN, Site


def spot_violations(
    totals: Mapping[ObjectRef, int],
    existing: Mapping[tuple[str | None, str | None], Site],
    placement: Placement,
    share: float,
) -> Iterable[str]:
    """totals: chunks of each demand that is no pending pod."""
    most_of = _most(totals.keys(), existing, placement)
    said = {(item.demand, item.chunks) for item in placement.crowded}
    found = set()
    for demand, total in totals.items():
        allowed = most_on_one_offering(share, total)
        most = most_of.get(demand, 0)
        if most > allowed:
            found.add((demand, most))
            if (demand, most) not in said:
                yield f"{demand}: {most} of {total} chunks may come to stand on one spot offering, {allowed} are allowed"
    for demand, chunks in sorted(said - found):
        yield f"{demand}: {chunks} chunks are said to crowd one spot offering, which they do not"


def _most(
    demands: Collection[ObjectRef], existing: Mapping[tuple[str | None, str | None], Site], placement: Placement
) -> Mapping[ObjectRef, int]:
    """How many chunks of each of these demands may come to be at one type and zone, at most."""
    held: Counter[tuple[ObjectRef, str, str]] = Counter()
    for occupied in placement.occupied:
        site = existing.get((occupied.node, occupied.node_claim if occupied.node is None else None))
        offerings = list(_spot(site))
        for holding in occupied.holdings if offerings else ():
            for name, zone in offerings if holding.demand in demands else ():
                held[holding.demand, name, zone] += holding.count
    for planned in placement.planned:
        for holding in planned.holdings if SPOT in planned.capacity_types else ():
            for name, zone in product(planned.instance_types, planned.zones) if holding.demand in demands else ():
                held[holding.demand, name, zone] += holding.count
    most: dict[ObjectRef, int] = {}
    for (demand, _, _), count in held.items():
        most[demand] = max(most.get(demand, 0), count)
    return most


def _spot(site: Site | None) -> Iterable[tuple[str, str]]:
    if site is None or SPOT not in _values(site, CAPACITY_TYPE_LABEL):
        return ()
    return product(_values(site, INSTANCE_TYPE_LABEL), _values(site, ZONE_LABEL))


def _values(site: Site, key: str) -> Iterable[str]:
    value = site.labels.get(key)
    return site.possible(key) if value == OPEN else (value or "",)
