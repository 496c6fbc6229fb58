"""Which sizes of new nodes hold a number of equal chunks at the lowest price, and what the room is worth that they leave.

A node with room for chunks to come beats a smaller one that is cheaper by no more than what that room is worth. The worth of each resource
is a price at which all that is asked for costs most, while no type of node costs less than its room: the dual of buying fractions of nodes
for all chunks together. Where a resource has none, such as memory where CPU runs out first, a little of what is asked for most in relation
to it decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from reconciler.placement.arrays import MOST_WORTH, PLENTY, Amounts, Fractions, Numbers
from reconciler.placement.constraints.limits import is_reservation
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.offers.node_templates import Compatibility
from reconciler.placement.offers.pool_offers import PoolOffers

Mix: TypeAlias = list[tuple[int, int]]
"""Nodes to make, each as (choice, chunks on it)."""

_FEW = 8
"""Prices are always computed up to this many chunks, since a table that small costs next to nothing."""


@dataclass(slots=True, eq=False)
class SizeOptions:
    """The instance types that new nodes can have for equal chunks, and their cheapest mixes, computed once for each count.

    types: numbers through all pools. chunks: how many one node of the type holds, 0 where the type cannot be had.
    prices: of its cheapest offering, in billionths of a USD an hour. costs: the same less what its room is worth. These have shape (types,).
    useful: indices into them of the sizes to choose from, the smallest first. compatibility: of the chunks.
    """

    types: Numbers
    chunks: Numbers
    prices: Numbers
    costs: Numbers
    useful: Numbers
    compatibility: Compatibility
    _known: dict[int, Mix] = field(default_factory=dict)
    _mixes: Numbers = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    """By number of chunks, the price of the cheapest mix, and how many nodes it has."""

    def mix(self, count: int, kernel: Kernel) -> Mix:
        """The cheapest nodes for `count` chunks, fullest first; a choice is an index into `types`. Empty when there is no size.

        Exact up to a few times the largest size. Beyond that, most nodes have the size with the lowest price per chunk. Among equal
        prices fewer nodes win, then the first choice."""
        if count not in self._known:
            self._known[count] = self._chosen(count, kernel) if len(self.useful) else []
        return self._known[count]

    def _chosen(self, count: int, kernel: Kernel) -> Mix:
        times = np.empty(len(self.useful), dtype=np.int64)
        costs = self.mix_prices(count, kernel)
        kernel.mix_of(self.chunks, self.costs, self.useful, costs, self._mixes[1], count, times)
        mix, left = [], count
        for place in reversed(np.repeat(self.useful, times).tolist()):
            if left > 0:
                mix.append((place, min(int(self.chunks[place]), left)))
                left -= mix[-1][1]
        return mix

    def mix_prices(self, count: int, kernel: Kernel) -> Numbers:
        """The price of the mixes for 0, 1, … up to at least `count` chunks; PLENTY where there is none."""
        known = self._mixes.shape[1]
        if count >= known:
            self._mixes = np.empty((2, max(count + 1, 2 * known, _FEW)), dtype=np.int64)
            kernel.mix_costs(self.chunks, self.costs, self.useful, self._mixes[0], self._mixes[1])
        prices: Numbers = self._mixes[0]
        return prices


def mix_price(mix: Mix, prices: Numbers) -> int:
    return sum(int(prices[choice]) for choice, _ in mix)


_TIES = 0.05
"""The part of the worth that goes by what is asked for alone."""
_ENOUGH_BATCHES = 16
"""From this many batches on, a batch is priced as if others used the room that it leaves. With fewer, nobody does."""
_LEAST = 1e-9


def worth_of_room(
    offers: Sequence[PoolOffers], rooms: Amounts, asked: Fractions, *, alone: bool
) -> tuple[Fractions, Fractions]:
    """By resource, what free room is worth; by type of all pools, what its room takes off its price. In billionths of a USD an hour.

    rooms: of these types, shape (types, resources). asked: what each batch requests in all, shape (batches, resources). alone: the resource
    that makes it dearest is all that can run out.
    """
    together = asked.sum(axis=0)
    scale = np.maximum(together, 1.0)
    # A reservation costs next to nothing, and there are few.
    least = [item.least_prices(item.rows & (not is_reservation(item))) for item in offers]
    prices = np.concatenate([np.zeros(0), *least])
    sold = (prices > 0) & (prices < PLENTY)
    if not sold.any() or not together.any():
        return np.zeros(len(together)), np.zeros(len(rooms))
    prices, parts = prices[sold], np.maximum(rooms[sold], 0) / scale
    even = 1.0 / max((parts.sum(axis=1) / prices).max(), _LEAST)
    wanted = together / scale
    dual = dual_of(parts, prices, wanted)
    if alone:
        dual = dual_of(parts, prices, np.where(np.arange(len(wanted)) == dual.argmax(), wanted, 0.0))
    worth = MOST_WORTH * ((1 - _TIES) * dual + _TIES * even) / scale
    if len(asked) < _ENOUGH_BATCHES:
        return worth, np.zeros(len(rooms))
    return worth, np.maximum(rooms, 0) @ worth


def dual_of(rooms: Fractions, prices: Fractions, asked: Fractions) -> Fractions:
    """The worth that makes `asked` dearest, with no room of a type worth more than its price. By the simplex method."""
    resources = len(asked)
    table = np.block([[rooms, prices[:, None]], [-np.where((rooms > 0).any(axis=0), asked, 0.0), np.zeros(1)]])
    columns, rows = np.arange(resources), np.full(len(prices), -1)
    for _ in range(8 * resources):
        column = int(table[-1, :-1].argmin())
        if table[-1, column] > -_LEAST:
            break
        able = table[:-1, column] > _LEAST
        ratios = np.where(able, table[:-1, -1] / np.where(able, table[:-1, column], 1.0), np.inf)
        row = int(ratios.argmin())
        if not able[row]:
            break
        pivot = table[row, column]
        row_now, column_now = table[row] / pivot, -table[:, column] / pivot
        table -= np.outer(table[:, column], row_now)
        table[row], table[:, column], table[row, column] = row_now, column_now, 1 / pivot
        rows[row], columns[column] = columns[column], rows[row]
    found: Fractions = np.zeros(resources)
    basic = np.flatnonzero(rows >= 0)
    found[rows[basic]] = np.maximum(table[basic, -1], 0.0)  # rounding leaves some a little below
    return found
