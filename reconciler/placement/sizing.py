"""Which node sizes hold a number of equal chunks most cheaply. Used by make; pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from reconciler.placement.label_table import Mask
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
        useful: list[Size] = []
        falling = (-chunks for chunks in self.chunks)
        for chunks, price, place in sorted(zip(falling, self.prices, range(len(self.prices)), strict=True)):
            if chunks and (not useful or price < useful[-1].price):
                useful.append(Size(-chunks, price, place))
        return useful[::-1]


@dataclass(frozen=True, slots=True)
class Size:
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
    best = min(useful, key=lambda size: (size.price / size.chunks, -size.chunks))
    largest = max(size.chunks for size in useful)
    bulk = max(0, (count - 2 * largest) // best.chunks)
    chosen = [best] * bulk + _exact(count - bulk * best.chunks, useful)
    chosen.sort(key=lambda size: (-size.chunks, size.price, size.choice))
    mix, left = [], count
    for size in chosen:
        if left > 0:
            mix.append((size.choice, min(size.chunks, left)))
            left -= size.chunks
    return mix


def mix_price(mix: Sequence[tuple[int, int]], prices: Sequence[int]) -> int:
    return sum(prices[choice] for choice, _ in mix)


def _exact(count: int, sizes: Sequence[Size]) -> list[Size]:
    options = tuple((size.chunks, size.price * _NODES + 1) for size in sizes)
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
