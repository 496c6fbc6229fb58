"""Which node sizes hold a number of equal chunks most cheaply. Used by make; pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from reconciler.placement.amounts import PLENTY
from reconciler.placement.blueprints import Blueprint
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.requirements import Requirements

Mix: TypeAlias = list[tuple[int, int]]
"""Nodes to make as (choice, chunks in it)."""

_NODES = 2**20
"""More nodes than any mix has."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Types that new nodes can be made of, one to a place in each list: pools, kinds: which; chunks: that it holds; prices:
    of its cheapest offering. rows: by pool, what a node that meets `wanted` can be bought as."""

    pools: list[int]
    kinds: list[int]
    chunks: list[int]
    prices: list[int]
    rows: Mapping[int, Mask]
    wanted: Requirements

    def only(self, places: Sequence[int]) -> Options:
        lists = (self.pools, self.kinds, self.chunks, self.prices)
        pools, kinds, chunks, prices = ([one[place] for place in places] for one in lists)
        return Options(pools, kinds, chunks, prices, self.rows, self.wanted)

    @property
    def sizes(self) -> list[Size]:
        """Those that hold something and for which no other holds as much for less, smallest first; a choice is a place."""
        chunks, prices = np.array(self.chunks, dtype=np.int64), np.array(self.prices, dtype=np.int64)
        order = np.lexsort((prices, -chunks))[: np.count_nonzero(chunks)]
        falling = prices[order]
        # Those that are cheaper than all that hold as much or more.
        useful = order[np.flatnonzero(falling[1:] < np.minimum.accumulate(falling)[:-1]) + 1] if len(order) else order
        places = [*order[:1].tolist(), *useful.tolist()]
        return [Size(self.chunks[place], self.prices[place], place) for place in reversed(places)]


class Size(NamedTuple):
    """One way to make a node: how many chunks it holds, its price (billionths of a USD an hour), and what it stands for."""

    chunks: int
    price: int
    choice: int


def mix_of(count: int, useful: Sequence[Size]) -> Mix:
    """Nodes to make for `count` chunks as (choice, chunks in it), fullest first; empty when there is no size.

    Exact for equal chunks up to a few times the largest size, by dynamic programming over (price, nodes); beyond that
    most are taken of the size with the lowest price a chunk. Of equal prices fewer nodes win, then the first choice.
    useful: sizes as `Options.sizes` has them, none better than another in both ways.
    """
    if not useful:
        return []
    best, largest = _bulk(useful)
    bulk = max(0, (count - 2 * largest) // best.chunks)
    chosen = [best] * bulk + _exact(count - bulk * best.chunks, useful)
    chosen.sort(key=lambda size: (-size.chunks, size.price, size.choice))
    mix, left = [], count
    for size in chosen:
        if left > 0:
            mix.append((size.choice, min(size.chunks, left)))
            left -= size.chunks
    return mix


class Mixes:
    """The mixes of one set of options, worked out once for each number of chunks."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._sizes = options.sizes
        self._known: dict[int, Mix] = {}
        self._prices: Amounts = np.zeros(0, dtype=np.int64)
        self.empty_nodes: dict[int, Blueprint] = {}
        """What a new node is to be, by number of a pool that has no limits (see make)."""

    def mix(self, count: int) -> Mix:
        if count not in self._known:
            self._known[count] = mix_of(count, self._sizes)
        return self._known[count]

    def prices(self, count: int) -> Amounts:
        """What the mixes of 0, 1, … up to at least `count` chunks cost; more than anything where there are none."""
        if count >= len(self._prices):
            self._prices = np.array(mix_prices(max(count, 2 * len(self._prices)), self._sizes), dtype=np.int64)
        return self._prices


def mix_prices(count: int, useful: Sequence[Size]) -> list[int]:
    """The prices of what `mix_of` finds for 0, 1, … `count` chunks."""
    if not useful:
        return [PLENTY] * (count + 1)
    if count == 1:
        return [0, min(size.price for size in useful)]
    best, largest = _bulk(useful)
    bulks = [max(0, (held - 2 * largest) // best.chunks) for held in range(count + 1)]
    costs = _costs(_costed(useful), 1 << max(0, count - bulks[-1] * best.chunks + best.chunks - 1).bit_length())
    rest = [held - bulk * best.chunks for held, bulk in enumerate(bulks)]
    return [bulk * best.price + costs[largest + left] // _NODES for bulk, left in zip(bulks, rest, strict=True)]


def mix_price(mix: Sequence[tuple[int, int]], prices: Sequence[int]) -> int:
    return sum(prices[choice] for choice, _ in mix)


def _bulk(useful: Sequence[Size]) -> tuple[Size, int]:
    """The size with the lowest price a chunk, and how many chunks the largest holds."""
    best = min(useful, key=lambda size: (size.price / size.chunks, -size.chunks))
    return best, max(size.chunks for size in useful)


def _costed(sizes: Sequence[Size]) -> tuple[tuple[int, int], ...]:
    return tuple((size.chunks, size.price * _NODES + 1) for size in sizes)


def _exact(count: int, sizes: Sequence[Size]) -> list[Size]:
    options = _costed(sizes)
    padding = max(size.chunks for size in sizes)
    costs = _costs(options, 1 << max(0, count - 1).bit_length())
    chosen, held = [], count
    while held > 0:
        at = padding + held
        number = next(n for n, (chunks, cost) in enumerate(options) if costs[at - chunks] + cost == costs[at])
        chosen.append(sizes[number])
        held -= sizes[number].chunks
    return chosen


@lru_cache(maxsize=256)
def _costs(options: tuple[tuple[int, int], ...], count: int) -> list[int]:
    """The least cost of holding 0, 1, … `count` chunks, after padding that stands for "nothing left to hold". Price and
    number of nodes are one integer, so that comparing it compares both."""
    padding = max(chunks for chunks, _ in options)
    costs = [0] * (padding + 1)
    for held in range(padding + 1, padding + count + 1):
        costs.append(min([costs[held - chunks] + cost for chunks, cost in options]))
    return costs
