"""Checks how much of each demand may come to stand on spot nodes of one offering. Used by violations;
the meaning of the share is the model's.

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
from reconciler.placement.checker.sites import OPEN, Site


def spot_violations(
    totals: Mapping[ObjectRef, int],
    existing: Mapping[tuple[str | None, str | None], Site],
    placement: Placement,
    share: float,
) -> Iterable[str]:
    """totals: chunks of each demand that is no pending pod."""
    held = _held(totals.keys(), existing, placement)
    said = {item.demand: item for item in placement.crowded}
    for demand, total in totals.items():
        allowed = most_on_one_offering(share, total)
        most = max(held[demand].values(), default=0)
        words = said.pop(demand, None)
        if most <= allowed:
            if words is not None:
                yield f"{demand}: {words.chunks} chunks are said to crowd one spot offering, which they do not"
            continue
        if words is None or words.chunks != most:
            yield f"{demand}: {most} of {total} chunks may come to stand on one spot offering, {allowed} are allowed"
            continue
        zones = {zone for (name, zone), count in held[demand].items() if name == words.instance_type and count == most}
        if zones != set(words.zones):
            yield f"{demand}: {most} chunks are said to crowd {words.instance_type} in {words.zones}, which is {zones}"
    for demand in sorted(said):
        yield f"{demand}: is said to crowd one spot offering, and is not there"


def _held(
    demands: Collection[ObjectRef], existing: Mapping[tuple[str | None, str | None], Site], placement: Placement
) -> Mapping[ObjectRef, Mapping[tuple[str, str], int]]:
    """How many chunks of each of these demands may come to be at each type and zone, at most."""
    held: dict[ObjectRef, Counter[tuple[str, str]]] = {demand: Counter() for demand in demands}
    for occupied in placement.occupied:
        site = existing.get((occupied.node, occupied.node_claim if occupied.node is None else None))
        offerings = list(_spot(site))
        for holding in occupied.holdings if offerings else ():
            for offering in offerings if holding.demand in demands else ():
                held[holding.demand][offering] += holding.count
    for planned in placement.planned:
        for holding in planned.holdings if SPOT in planned.capacity_types else ():
            for offering in product(planned.instance_types, planned.zones) if holding.demand in demands else ():
                held[holding.demand][offering] += holding.count
    return held


def _spot(site: Site | None) -> Iterable[tuple[str, str]]:
    if site is None or SPOT not in _values(site, CAPACITY_TYPE_LABEL):
        return ()
    return product(_values(site, INSTANCE_TYPE_LABEL), _values(site, ZONE_LABEL))


def _values(site: Site, key: str) -> Iterable[str]:
    value = site.labels.get(key)
    return site.possible(key) if value == OPEN else (value or "",)
