"""Pricing: which patterns are worth more, at given dual prices, than their nodes cost.

Nodes of all bin types are filled greedily, each in several orders. None of the patterns is sure to be the best, but each is
sure to fit. Solving each of these knapsacks exactly takes many times as long and lowers the price by half a percent at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.greedy_fill import greedy_fill
from reconciler.optimizer.master import MasterSolution
from reconciler.optimizer.packing import Packing
from reconciler.optimizer.solver import Floats
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts

_GAIN = 1e-7
"""USD an hour that a column must save; less is rounding."""
_LONGEST_REST = 7
"""Most rounds for which a bin type is left out after it had no column."""
_STEPS = 6
"""Of a weight, from none to all of it: finer steps take longer and hardly find more."""


class Pricing:
    """Remembers which bin types had no column lately, so as to try the others first."""

    def __init__(self, packing: Packing) -> None:
        bin_types = packing.bin_types
        self._packing = packing
        self._bin_types = bin_types
        self._most = packing.most_per_node
        self._rest = np.zeros(len(bin_types), dtype=np.int64)
        self._wait = np.zeros(len(bin_types), dtype=np.int64)
        requests = packing.rules.sizes[:, : bin_types.capacity.shape[1]]
        used = np.flatnonzero(requests.any(axis=0))
        weights = np.array(list(_weights(len(used))), dtype=np.float64)
        shares = requests[None, :, used] / np.maximum(bin_types.capacity[:, used], 1)[:, None, :]
        self._burden: Floats = np.einsum("ow,skw->sok", weights, shares)
        """Bin types × weights × item types: the weighted part of a node that one chunk takes."""
        of_sets: dict[bytes, list[int]] = {}
        for number, admitted in enumerate(bin_types.admits):
            of_sets.setdefault(admitted.tobytes(), []).append(number)
        self._alike = [(bin_types.admits[numbers[0]], np.array(numbers)) for numbers in of_sets.values()]
        """Bin types on which the same item types may be, with which these are."""

    def columns(self, solution: MasterSolution, left: Amounts, budget: WorkBudget) -> list[Pattern]:
        """At most one column for each bin type; none only where no bin type has any. left: by item type, chunks that want a node."""
        chosen = np.flatnonzero((solution.dual_prices > 0) & (left > 0))
        admitting = self._bin_types.admits[:, chosen].any(axis=1)
        now = admitting & (self._wait == 0)
        self._wait = np.maximum(self._wait - 1, 0)
        for asked in (now, admitting & ~now):
            found: list[Pattern] = []
            for admitted, alike in self._alike:
                bins = alike[asked[alike]]
                if len(bins):
                    found += self._best_of(bins, chosen[admitted[chosen]], solution, left, budget)
            if found:
                return found
        return []

    def _best_of(
        self, bins: Amounts, chosen: Amounts, solution: MasterSolution, left: Amounts, budget: WorkBudget
    ) -> list[Pattern]:
        dual_prices = solution.dual_prices
        costs = self._bin_types.prices[bins] / 1e9 + solution.surcharges[self._bin_types.pools[bins]]
        filled = self._filled(bins, chosen, dual_prices, left)
        budget.charge_filling(filled.size)
        value = filled @ dual_prices[chosen]
        best = value.argmax(axis=1)
        gains = value[np.arange(len(bins)), best] - costs > _GAIN
        self._rest[bins] = np.where(gains, 0, np.minimum(2 * self._rest[bins] + 1, _LONGEST_REST))
        self._wait[bins] = self._rest[bins]
        found = []
        for place in np.flatnonzero(gains).tolist():
            counts = filled[place, best[place]]
            held = np.flatnonzero(counts)
            items = tuple(zip(chosen[held].tolist(), counts[held].tolist(), strict=True))
            found.append(self._bin_types.pattern(int(bins[place]), items))
        return found

    def _filled(self, bins: Amounts, chosen: Amounts, dual_prices: Floats, left: Amounts) -> Amounts:
        """Counts by bin type, weights and chosen item type: what is worth most for the part of the node that it takes first."""
        orders = self._burden.shape[1]
        burden = self._burden[np.ix_(bins, np.arange(orders), chosen)].reshape(-1, len(chosen))
        order = np.argsort(-dual_prices[chosen] / np.maximum(burden, 1e-12), axis=1, kind="stable")
        admitted = np.ones(order.shape, dtype=np.bool_)
        most = np.minimum(self._most[chosen], left[chosen])
        capacity = np.repeat(self._packing.room[bins], orders, axis=0)
        conflicts = self._packing.rules.conflicts[np.ix_(chosen, chosen)]
        filled = greedy_fill()(order, admitted, self._packing.rules.sizes[chosen], capacity, most, conflicts)
        return filled.reshape(len(bins), orders, len(chosen))


def _weights(resources: int) -> Iterable[Floats]:
    """What scarce may mean: all resources alike, mixes of the first three, and each of the others alone.

    The number of pods is the third. The more it weighs, the sooner large chunks come, and the small ones then fill the gaps.
    """
    yield np.full(resources, 1 / resources)
    mixed = min(resources, 3)
    for parts in product(range(_STEPS + 1), repeat=mixed):
        if sum(parts) == _STEPS:
            yield np.array([*parts, *[0] * (resources - mixed)]) / _STEPS
    yield from np.eye(resources)[mixed:]
