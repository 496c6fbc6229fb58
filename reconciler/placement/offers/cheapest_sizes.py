"""Which sizes of new nodes hold a number of equal chunks at the lowest price. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from reconciler.placement.loops.arrays import Numbers
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.offers.compatibility import Compatibility
from reconciler.placement.offers.node_templates import NodeTemplate

Mix: TypeAlias = list[tuple[int, int]]
"""Nodes to make, each as (choice, chunks on it)."""

_NODES = 2**20
"""More nodes than any mix has."""
_FEW = 8
"""Prices are always computed up to this many chunks, since a table that small costs next to nothing."""
_NO_NUMBERS: Numbers = np.zeros(0, dtype=np.int64)


class NodeSize(NamedTuple):
    """One way to make a node.

    chunks: how many it holds. price: in billionths of a USD an hour. choice: identifies it to the caller.
    """

    chunks: int
    price: int
    choice: int


def mix_of(count: int, useful: Sequence[NodeSize]) -> Mix:
    """The cheapest nodes for `count` chunks, fullest first; empty when there is no size.

    It is exact up to a few times the largest size, by dynamic programming over (price, number of nodes). Beyond that, most nodes
    have the size with the lowest price per chunk. Among equal prices fewer nodes win, then the first choice.
    useful: sizes of which none is both larger and cheaper than another.
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


class SizeOptions:
    """The instance types that new nodes can have for equal chunks, and their cheapest mixes, computed once for each count.

    types: numbers through all pools. chunks: how many one node of the type holds, 0 where the type cannot be had.
    prices: of its cheapest offering, in billionths of a USD an hour. These three have shape (types,).
    useful: indices into them of the sizes to choose from. compatibility: of the chunks.
    new: by number of chunks, the template of the one new node that takes them all; -1 where that is not known.
    """

    def __init__(
        self,
        types: Numbers,
        chunks: Numbers,
        prices: Numbers,
        useful: Numbers,
        *,
        compatibility: Compatibility,
    ) -> None:
        self.types, self.chunks, self.prices, self.useful = types, chunks, prices, useful
        self.compatibility = compatibility
        self._sizes: list[NodeSize] | None = None
        self._known: dict[int, Mix] = {}
        self._mix_prices = _NO_NUMBERS
        self.new = _NO_NUMBERS
        self.empty_nodes: dict[int, NodeTemplate] = {}
        """By number of a pool without limits, the template of a new node."""

    def mix(self, count: int) -> Mix:
        """The cheapest nodes for so many chunks; a choice is an index into `types`."""
        if count not in self._known:
            self._known[count] = self._cheapest() if count == 1 else mix_of(count, self._all_sizes())
        return self._known[count]

    def _cheapest(self) -> Mix:
        return [(int(self.useful[0]), 1)] if len(self.useful) else []

    def _all_sizes(self) -> list[NodeSize]:
        if self._sizes is None:
            columns = (self.chunks[self.useful], self.prices[self.useful], self.useful)
            self._sizes = list(map(NodeSize, *(column.tolist() for column in columns)))
        return self._sizes

    def mix_prices(self, count: int, kernel: Kernel) -> Numbers:
        """The price of the mixes for 0, 1, … up to at least `count` chunks; PLENTY where there is none."""
        known = len(self._mix_prices)
        if count >= known:
            length = max(count + 1, 2 * known, _FEW)
            table = np.empty((3, length), dtype=np.int64)
            table[2, :known], table[2, known:] = self.new, -1
            self._mix_prices, nodes, self.new = table
            kernel.mix_costs(self.chunks, self.prices, self.useful, self._mix_prices, nodes)
        return self._mix_prices

    def note_new(self, count: int, template: NodeTemplate) -> None:
        """Notes that a new node of this template is what to make for this many chunks."""
        if count < len(self.new):
            self.new[count] = template.number


def mix_price(mix: Mix, prices: Numbers) -> int:
    return sum(int(prices[choice]) for choice, _ in mix)


def _bulk(useful: Sequence[NodeSize]) -> tuple[NodeSize, int]:
    """The size with the lowest price per chunk, and how many chunks the largest size holds."""
    best = min(useful, key=lambda size: (size.price / size.chunks, -size.chunks))
    return best, max(size.chunks for size in useful)


def _costed(sizes: Sequence[NodeSize]) -> tuple[tuple[int, int], ...]:
    return tuple((size.chunks, size.price * _NODES + 1) for size in sizes)


def _exact(count: int, sizes: Sequence[NodeSize]) -> list[NodeSize]:
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
    """The least cost of holding 0, 1, … `count` chunks, after padding that stands for "nothing left to hold".

    A cost is the price and the number of nodes in one integer, so that comparing it compares both.
    """
    padding = max(chunks for chunks, _ in options)
    costs = [0] * (padding + 1)
    for held in range(padding + 1, padding + count + 1):
        costs.append(min([costs[held - chunks] + cost for chunks, cost in options]))
    return costs
