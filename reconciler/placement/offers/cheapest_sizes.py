"""Which sizes of new nodes hold a number of equal chunks at the lowest price. Pure arithmetic."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from reconciler.placement.loops.arrays import Numbers
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.offers.node_templates import Compatibility, NodeTemplate

Mix: TypeAlias = list[tuple[int, int]]
"""Nodes to make, each as (choice, chunks on it)."""

_FEW = 8
"""Prices are always computed up to this many chunks, since a table that small costs next to nothing."""
_NO_NUMBERS: Numbers = np.zeros(0, dtype=np.int64)


class SizeOptions:
    """The instance types that new nodes can have for equal chunks, and their cheapest mixes, computed once for each count.

    types: numbers through all pools. chunks: how many one node of the type holds, 0 where the type cannot be had.
    prices: of its cheapest offering, in billionths of a USD an hour. These three have shape (types,).
    useful: indices into them of the sizes to choose from, the smallest first. compatibility: of the chunks.
    new: by number of chunks, the template of the one new node that takes them all; -1 where that is not known.
    """

    def __init__(
        self,
        types: Numbers,
        chunks: Numbers,
        prices: Numbers,
        costs: Numbers,
        useful: Numbers,
        *,
        compatibility: Compatibility,
    ) -> None:
        self.types, self.chunks, self.prices, self.costs, self.useful = types, chunks, prices, costs, useful
        self.compatibility = compatibility
        self._known: dict[int, Mix] = {}
        self._mix_prices = self._mix_nodes = _NO_NUMBERS
        self.new: Numbers = np.zeros((2, 0), dtype=np.int64)
        self.empty_nodes: dict[int, NodeTemplate] = {}
        """By number of a pool without limits, the template of a new node."""

    def mix(self, count: int, kernel: Kernel) -> Mix:
        """The cheapest nodes for so many chunks, fullest first; a choice is an index into `types`. Empty when there is no size.

        Exact up to a few times the largest size. Beyond that, most nodes have the size with the lowest price per chunk. Among equal
        prices fewer nodes win, then the first choice."""
        if count not in self._known:
            self._known[count] = self._chosen(count, kernel)
        return self._known[count]

    def _chosen(self, count: int, kernel: Kernel) -> Mix:
        """Goes back through the table of prices, from size to size."""
        sizes = [(int(self.chunks[choice]), int(self.costs[choice]), choice) for choice in self.useful.tolist()]
        if not sizes:
            return []
        costs = self.mix_prices(count, kernel)[: count + 1].tolist()
        nodes = self._mix_nodes[: count + 1].tolist()
        best = min(sizes, key=lambda size: (size[1] / size[0], -size[0]))
        largest, chosen, left = sizes[-1][0], [], count
        while left > 0:
            size = best
            if left - 2 * largest < best[0]:
                size = next(
                    item
                    for item in sizes
                    if costs[max(0, left - item[0])] + item[1] == costs[left]
                    and nodes[max(0, left - item[0])] + 1 == nodes[left]
                )
            chosen.append(size)
            left -= size[0]
        chosen.sort(key=lambda size: (-size[0], size[1:]))
        mix, left = [], count
        for chunks, _, choice in chosen:
            if left > 0:
                mix.append((choice, min(chunks, left)))
                left -= chunks
        return mix

    def mix_prices(self, count: int, kernel: Kernel) -> Numbers:
        """The price of the mixes for 0, 1, … up to at least `count` chunks; PLENTY where there is none."""
        known = len(self._mix_prices)
        if count >= known:
            length = max(count + 1, 2 * known, _FEW)
            table = np.empty((4, length), dtype=np.int64)
            table[2:, :known], table[2:, known:] = self.new, -1
            self._mix_prices, self._mix_nodes, self.new = table[0], table[1], table[2:]
            kernel.mix_costs(self.chunks, self.costs, self.useful, self._mix_prices, self._mix_nodes)
        return self._mix_prices

    def note_new(self, count: int, template: NodeTemplate, instance_type: int) -> None:
        """Notes that a new node of this template and type is what to make for this many chunks."""
        if count < self.new.shape[1]:
            self.new[:, count] = template.number, instance_type


def mix_price(mix: Mix, prices: Numbers) -> int:
    return sum(int(prices[choice]) for choice, _ in mix)
