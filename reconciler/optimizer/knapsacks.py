"""Exact pricing: the most that chunks on one node can be worth at given dual prices, by an integer program for each bin type.

It takes many times as long as filling nodes greedily (`pricing.py`), but what it says is sure, so that a bound can rest on it.
"""

from __future__ import annotations

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.master import MasterSolution
from reconciler.optimizer.packing import Packing
from reconciler.optimizer.solver import LinearProgram
from reconciler.optimizer.work_budget import WorkBudget

_LEAST_PRICE = 1e-9
"""USD an hour that stands for none, where it is divided by."""
_LEAST_GAIN = 1e-7
"""Part of a node's price by which a column must save; less is rounding."""
_GAP = 0.001
"""Part of what chunks are worth that is left open; less takes up to four times as long."""


class Knapsacks:
    """A program for each bin type. What excludes only some of the others is left out, so that chunks are worth rather too much."""

    def __init__(self, packing: Packing) -> None:
        self._bin_types = packing.bin_types
        self._items = [np.flatnonzero(most) for most in packing.most_alone]
        self._programs = []
        for number, items in enumerate(self._items):
            shares = packing.shares(number)[items]
            program = LinearProgram(np.full(shares.shape[1], -1.0), presolve="on", mip_rel_gap=_GAP)
            program.add(np.zeros(len(items)), -shares, packing.most_alone[number, items].astype(np.float64))
            self._programs.append(program)

    def price(self, solution: MasterSolution, budget: WorkBudget, *, branches: int) -> tuple[float, list[Pattern]]:
        """How many times its price a node's chunks are worth at most, at least once; and patterns that are worth more than they cost.

        Bin types that are worth less than the best so far, even when chunks are split, are left out. branches: of each program.
        """
        dual_prices, surcharges = solution.dual_prices, solution.surcharges[self._bin_types.pools]
        prices = np.maximum(self._bin_types.prices / 1e9, _LEAST_PRICE)
        most = np.full(len(prices), np.inf)
        for number, (program, items) in enumerate(zip(self._programs, self._items, strict=True)):
            program.cost(-dual_prices[items])
            if program.solve(budget):
                most[number] = -(program.least_cost + surcharges[number]) / prices[number]
        ratio, found = 1.0, []
        for number in np.argsort(-most, kind="stable").tolist():
            if most[number] <= ratio:
                break
            program, items = self._programs[number], self._items[number]
            program.set(mip_max_nodes=branches)
            program.solve(budget, whole=len(items))
            ratio = max(ratio, min(float(most[number]), -(program.bound + surcharges[number]) / prices[number]))
            counts = np.rint(program.amounts).astype(np.int64)
            if counts @ dual_prices[items] > surcharges[number] + prices[number] * (1 + _LEAST_GAIN):
                held = np.flatnonzero(counts)
                found.append(
                    self._bin_types.pattern(
                        number, tuple(zip(items[held].tolist(), counts[held].tolist(), strict=True))
                    )
                )
        return ratio, found
