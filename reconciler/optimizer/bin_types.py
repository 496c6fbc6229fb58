"""Bin types: what new nodes can be bought as, each instance type where it costs least. Packing and its bound have the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from reconciler.placement.amounts import Amounts
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask

Items: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers of item types and how many chunks of each, by number."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one node holds: a column of the master problem. price: USD an hour; pool: number of its NodePool."""

    items: Items
    price: float
    pool: int


@dataclass(frozen=True, slots=True)
class BinTypes:
    """One entry each. capacity: bin types × resources, after daemons. prices: billionths of a USD an hour. admits: bin types ×
    item types, which of these may be on such a node. pools: numbers of NodePools."""

    capacity: Amounts
    prices: Amounts
    admits: Mask
    pools: Amounts

    def __len__(self) -> int:
        return len(self.prices)

    def pattern(self, number: int, items: Items) -> Pattern:
        return Pattern(items, int(self.prices[number]) / 1e9, int(self.pools[number]))


Purchase: TypeAlias = Mapping[int, Mask]
"""What a new node for an item type may be bought as: by number of a NodePool, a mask of its catalog."""


def planned_pattern(state: State, index: int, items: Mapping[int, int]) -> Pattern:
    """A planned node as a pattern. items: how many chunks of each item type are on it."""
    planned = state.planned
    return Pattern(tuple(sorted(items.items())), int(planned.price[index]) / 1e9, planned.of(index).pool)


def bin_types_for(state: State, purchases: Sequence[Purchase]) -> BinTypes:
    """All that item types can be together on, without those that are no better than another one in any respect.

    purchases: by item type.
    """
    chosen: list[tuple[int, int]] = []
    admits: list[Mask] = []
    for pool, offers in enumerate(state.offers):
        nothing = np.zeros(len(offers.priced), dtype=np.bool_)
        of_pool = np.array([rows.get(pool, nothing) for rows in purchases], dtype=np.bool_)
        masks = of_pool.reshape(len(purchases), len(nothing)) & offers.priced
        for row in np.flatnonzero(masks.any(axis=0)).tolist():
            chosen.append((pool, row))
            admits.append(masks[:, row])
    rooms = [state.offers[pool].room[state.offers[pool].offerings.types_of[row]] for pool, row in chosen]
    prices = np.array([state.offers[pool].prices[row] for pool, row in chosen], dtype=np.int64)
    capacity = np.array(rooms, dtype=np.int64).reshape(len(chosen), len(state.columns.names))
    admitting = np.array(admits, dtype=np.bool_).reshape(len(chosen), len(purchases))
    numbers_of_pools = np.array([pool for pool, _ in chosen], dtype=np.int64)
    kept = _undominated(capacity, prices, admitting, numbers_of_pools)
    return BinTypes(capacity[kept], prices[kept], admitting[kept], numbers_of_pools[kept])


def _undominated(capacity: Amounts, prices: Amounts, admits: Mask, pools: Amounts) -> list[int]:
    """Of two that are as good as each other the first stays. Of each NodePool, since another one may be limited."""
    kept: list[int] = []
    for number in np.argsort(prices, kind="stable").tolist():
        as_large = (pools[kept] == pools[number]) & (capacity[kept] >= capacity[number]).all(axis=1)
        if not (as_large & (admits[kept] >= admits[number]).all(axis=1)).any():
            kept.append(number)
    return sorted(kept)
