"""What a node must list for its pool's minValues, and what that counts against the pool's limits.

As Karpenter has it under its MinValuesPolicy Strict (the default), what would launch with fewer values is not launched. A node that
lists several types may become the largest of them, so that is what its pool is charged for. While chunks are placed it is charged for
the least list that will do. So a node is possible wherever the limits leave room for that, and none loses its place to alternatives of
another. Longer lists come last, where room is left (see offer).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.constraints.limits import NODES
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.listings import listable, sold_in
from reconciler.placement.offers.pool_offers import PoolOffers


class LeastList(NamedTuple):
    """instance_types: by number; largest: of them, resource by resource."""

    instance_types: tuple[int, ...]
    largest: Resources


def least_list(offers: PoolOffers, rows: Mask, primary: int) -> LeastList | None:
    """Of all lists with enough values the one that counts least against the limits; None where there is none. rows: what may be
    listed; primary: the cheapest of them, which is among the types wherever it can be."""
    if not offers.meets_minimums(rows):
        return None
    shares = [_share(offers, capacity) for capacity in offers.capacities]
    own = int(offers.offerings.types_of[primary])
    enough = max(shares[own], _enough(offers, rows, shares))
    best: tuple[float, LeastList] | None = None
    for listed, place in listable(offers, rows, primary):
        there, instance_types = sold_in(offers, listed, place)
        found = _shortest(
            offers,
            there,
            sorted(instance_types, key=lambda instance_type: (instance_type != own, shares[instance_type])),
        )
        if found is None:
            continue
        share = max(shares[instance_type] for instance_type in found)
        if best is None or share < best[0]:
            best = (share, LeastList(found, largest_of(offers, found)))
        if share <= enough:
            break
    return None if best is None else best[1]


def can_be_met(offers: PoolOffers, rows: Mask) -> bool:
    """Whether a node that may be bought as any of the rows can list enough values."""
    there = np.flatnonzero(rows)
    if not offers.minimums or not len(there):
        return bool(len(there))
    return least_list(offers, rows, int(there[offers.prices[there].argmin()])) is not None


def largest_of(offers: PoolOffers, instance_types: Sequence[int]) -> Resources:
    """What the pool is charged for: whichever of them the node becomes."""
    largest = Resources()
    for instance_type in instance_types:
        largest = largest.at_least(offers.capacities[instance_type])
    return largest


def _share(offers: PoolOffers, capacity: Resources) -> float:
    """Of the limits, what a type takes of the one that it takes most of."""
    limits = [(name, limit) for name, limit in offers.pool.limits or () if name != NODES]
    return max((capacity.get(name) / max(limit, 1) for name, limit in limits), default=0.0)


def _enough(offers: PoolOffers, rows: Mask, shares: Sequence[float]) -> float:
    """The least that any list comes to, wherever its types are sold."""
    instance_types = sorted(
        np.flatnonzero(offers.offerings.types_in(rows)).tolist(), key=lambda instance_type: shares[instance_type]
    )
    found = _shortest(offers, rows, instance_types)
    return 0.0 if found is None else max(shares[instance_type] for instance_type in found)


def _shortest(offers: PoolOffers, rows: Mask, instance_types: Sequence[int]) -> tuple[int, ...] | None:
    """As many of the types, in their order, as have enough values; of these only such as are needed, of several limits' sake."""
    catalog = offers.offerings
    if not instance_types or not offers.meets_minimums(rows & catalog.rows_of(instance_types)):
        return None
    fewest, most = 1, len(instance_types)
    while fewest < most:
        half = (fewest + most) // 2
        if offers.meets_minimums(rows & catalog.rows_of(instance_types[:half])):
            most = half
        else:
            fewest = half + 1
    found = list(instance_types[:most])
    for instance_type in reversed(found[1:]):
        others = [item for item in found if item != instance_type]
        if offers.meets_minimums(rows & catalog.rows_of(others)):
            found = others
    return tuple(found)
