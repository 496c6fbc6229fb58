"""What a node must list for its pool's minValues, and what that counts against the pool's limits.

Under Karpenter's MinValuesPolicy Strict (the default), a node that lists fewer values is not launched. A node that lists several
types may become the largest of them, so its pool is charged for that one. While chunks are placed, the charge is for the smallest
list with enough values. So a node is possible wherever the limits leave room for that list, and no node is crowded out by another's
alternatives. Longer lists are made at the end, where room is left (see `place.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reconciler.model.placement import Cause, UnplacedReason
from reconciler.model.quantity import Resources, readable_amount
from reconciler.placement.constraints.limits import NODES, PoolLimits
from reconciler.placement.offers.pool_offers import PoolOffers, listable, sold_in
from reconciler.placement.requirements import Mask


class LeastList(NamedTuple):
    """instance_types: their numbers. largest: the largest amount of each resource among them."""

    instance_types: tuple[int, ...]
    largest: Resources


def least_list(offers: PoolOffers, rows: Mask, primary: int) -> LeastList | None:
    """Of all lists with enough values, the one that counts least against the limits; None where there is none.

    rows: offerings that may be listed. primary: the cheapest type, which is in the list wherever it can be."""
    if not offers.meets_minimums(rows):
        return None
    shares = [_share(offers, capacity) for capacity in offers.capacities]
    own = int(offers.offerings.types_of[primary])
    every = sorted(np.flatnonzero(offers.offerings.types_in(rows)).tolist(), key=shares.__getitem__)
    # No list has a smaller share, wherever its types are sold.
    enough = max(shares[each] for each in (own, *(_shortest(offers, rows, every) or ())))
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
            best = (share, LeastList(found, Resources.largest(offers.capacities[each] for each in found)))
        if share <= enough:
            break
    return None if best is None else best[1]


def can_be_met(offers: PoolOffers, rows: Mask) -> bool:
    """Whether a node that may be bought as any of the rows can list enough values."""
    there = np.flatnonzero(rows)
    if not offers.minimums or not len(there):
        return bool(len(there))
    return least_list(offers, rows, int(there[offers.prices[there].argmin()])) is not None


def min_values_reason(offers: PoolOffers, rows: Mask, limits: PoolLimits) -> UnplacedReason | None:
    """Why no list of the rows has enough values within the limits; None where some list has. rows: offerings that hold the chunk."""
    if not offers.minimums:
        return None
    name, there = offers.pool.name, np.flatnonzero(rows)
    least = least_list(offers, rows, int(there[offers.prices[there].argmin()]))
    if least is None:
        few = f"too few values of {', '.join(key for key, _ in offers.minimums)} are left for its minValues"
        return UnplacedReason(Cause.MIN_VALUES, 1, f"NodePool {name}: {_short_of_values(offers, rows) or few}")
    shortage = limits.shortage(name, least.largest)
    if shortage is None:
        return None
    resource, counts = shortage.resource, least.largest.get(shortage.resource)
    limit, used, one = (readable_amount(resource, amount) for amount in (shortage.limit, shortage.used, counts))
    words = f"has used {used} of its {resource} limit of {limit}, and a node that lists enough types for its minValues counts as {one}"
    return UnplacedReason(Cause.AT_LIMIT, len(least.instance_types), f"NodePool {name} {words}")


def _short_of_values(offers: PoolOffers, rows: Mask) -> str:
    """The first label of which the types that hold the chunk have too few values; "" if there is none."""
    for key, minimum in offers.minimums:
        if key not in offers.offerings.table.keys:
            return f"no instance type has label {key}, of which its minValues asks for {minimum}"
        count = offers.values_left(key, rows)
        if count < minimum:
            values = f"{count} value{'' if count == 1 else 's'}"
            return f"its minValues asks for {minimum} values of {key}, and what is large enough has {values}"
    return ""


def _share(offers: PoolOffers, capacity: Resources) -> float:
    """The largest share that a type takes of any limit."""
    limits = [(name, limit) for name, limit in offers.pool.limits or () if name != NODES]
    return max((capacity.get(name) / max(limit, 1) for name, limit in limits), default=0.0)


def _shortest(offers: PoolOffers, rows: Mask, instance_types: Sequence[int]) -> tuple[int, ...] | None:
    """The first of these types that together have enough values, without those that prove unnecessary."""
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
