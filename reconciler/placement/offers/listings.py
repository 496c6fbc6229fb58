"""Where a planned node may be bought: the zones and capacity types that its NodeClaim lists, best first.

A provider may launch any listed type in any listed zone and capacity type. So only types that are sold in all of them can be
listed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, product

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, ZONE_LABEL
from reconciler.placement.amounts import PLENTY
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import one_of

Place = tuple[tuple[str, ...], tuple[str, ...]]
"""Zones and capacity types."""
MOST_ZONES = 8
"""Up to this many zones, every set of them is tried. Clouds have at most six in a region."""


def listable(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[tuple[Mask, Place]]:
    """Rows and places to list, best first.

    A type with a known price is listed with types whose price is known too, unless minValues needs more.
    rows: by row of the catalog, whether it may be listed at all. primary: the cheapest of them.
    """
    if offers.priced[primary] and not offers.priced[rows].all():
        known = rows & offers.priced
        yield from ((known, place) for place in _places(offers, known, primary))
    yield from ((rows, place) for place in _places(offers, rows, primary))


def sold_in(offers: PoolOffers, rows: Mask, place: Place) -> tuple[Mask, list[int]]:
    """The rows that are in a place, and the numbers of the types that are sold in all of it, cheapest first."""
    catalog = offers.offerings
    table = catalog.table
    there = rows & table.allowed(ZONE_LABEL, one_of(*place[0])) & table.allowed(CAPACITY_TYPE_LABEL, one_of(*place[1]))
    zones, capacity_types = table.column(ZONE_LABEL), table.column(CAPACITY_TYPE_LABEL)
    sold = np.zeros((len(catalog.types), len(zones[1]), len(capacity_types[1])), dtype=np.bool_)
    sold[catalog.types_of[there], zones[0][there], capacity_types[0][there]] = True
    complete = np.flatnonzero(sold.sum(axis=(1, 2)) == len(place[0]) * len(place[1]))
    prices = np.full(len(catalog.types), PLENTY, dtype=np.int64)
    np.minimum.at(prices, catalog.types_of[there], offers.prices[there])
    instance_types: list[int] = complete[np.argsort(prices[complete], kind="stable")].tolist()
    return there, instance_types


def _places(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[Place]:
    """Places to try, best first.

    First come as many zones and capacity types around the cheapest offering as its type is sold in. Fewer of them follow, since
    more types are sold there. Then comes each place alone, cheapest first, in case the first has too few types. Where the pool
    has minValues, every other set of zones and capacity types comes last.
    """
    seen = set[Place]()
    for place in chain(_around(offers, rows, primary), _alone(offers, rows)):
        if place not in seen:
            seen.add(place)
            yield place
    if not offers.minimums:
        return
    catalog, there = offers.offerings, np.flatnonzero(rows).tolist()
    zones = sorted({catalog.zones[row] for row in there})
    capacity_types = sorted({catalog.capacity_types[row] for row in there})
    if len(zones) <= MOST_ZONES:
        yield from (place for place in product(_subsets(zones), _subsets(capacity_types)) if place not in seen)


def _subsets(names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """All but the empty one, the largest first."""
    return [some for size in range(len(names), 0, -1) for some in combinations(names, size)]


def _around(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[Place]:
    catalog = offers.offerings
    instance_type = catalog.types_of[primary]
    sold = {
        (catalog.zones[row], catalog.capacity_types[row])
        for row in np.flatnonzero(rows & (catalog.types_of == instance_type)).tolist()
    }
    zone, capacity_type = catalog.zones[primary], catalog.capacity_types[primary]
    zones = tuple(sorted(other for other, sold_as in sold if sold_as == capacity_type))
    others = sorted({sold_as for _, sold_as in sold} - {capacity_type})
    for size in range(len(others), 0, -1):
        for more in combinations(others, size):
            if all((other, sold_as) in sold for other in zones for sold_as in more):
                yield zones, tuple(sorted((capacity_type, *more)))
    for fewer in _subsets(zones):
        if zone in fewer:
            yield fewer, (capacity_type,)


def _alone(offers: PoolOffers, rows: Mask) -> Iterator[Place]:
    catalog, there = offers.offerings, np.flatnonzero(rows)
    for row in there[np.argsort(offers.prices[there], kind="stable")].tolist():
        yield (catalog.zones[row],), (catalog.capacity_types[row],)
