"""Column generation: a linear master problem mixes known patterns, and pricing looks for patterns that would make it cheaper.

The master's dual prices say what one more chunk of each item type would cost. A pattern whose chunks are worth more than its
node costs lowers the master's price, so it becomes a column. See Gilmore and Gomory (1961) on the cutting-stock problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.pricing import Pricing
from reconciler.optimizer.solver import UNBOUNDED, Floats, load_solver, run
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts

_PROGRESS = 1e-5
"""Part of the price by which it must fall within `_PATIENCE` rounds for more rounds to be worth it."""
_PATIENCE = 20


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """price: USD an hour; amounts: nodes by pattern, with fractions; dual_prices: USD an hour of a chunk by item type."""

    price: float
    amounts: Floats
    dual_prices: Floats


class MasterProblem:
    """How many nodes of each pattern, fractions allowed, hold all chunks at the least price. counts: chunks by item type."""

    def __init__(self, counts: Amounts) -> None:
        self._highs, self._solver = load_solver()
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        for count in counts.tolist():
            self._solver.addRow(float(count), UNBOUNDED, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def add(self, patterns: Sequence[Pattern]) -> int:
        """Returns how many of the patterns were new."""
        added = 0
        for pattern in patterns:
            if pattern in self._known:
                continue
            self._known.add(pattern)
            self.patterns.append(pattern)
            rows = np.array([number for number, _ in pattern.items], dtype=np.int32)
            amounts = np.array([count for _, count in pattern.items], dtype=np.float64)
            self._solver.addCol(pattern.price, 0.0, UNBOUNDED, len(rows), rows, amounts)
            added += 1
        return added

    def require(self, counts: Amounts) -> None:
        """From now on, place so many chunks of each item type."""
        for number, count in enumerate(counts.tolist()):
            self._solver.changeRowBounds(number, float(count), UNBOUNDED)

    def solve(self, budget: WorkBudget) -> MasterSolution | None:
        """None when no optimum was found within the budget."""
        if not run(self._highs, self._solver, budget):
            return None
        solution = self._solver.getSolution()
        return MasterSolution(
            float(self._solver.getInfo().objective_function_value),
            np.array(solution.col_value, dtype=np.float64),
            np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0),
        )


class ColumnGeneration:
    """The master problem together with the pricing that finds columns for it."""

    def __init__(self, master: MasterProblem, pricing: Pricing, budget: WorkBudget) -> None:
        self.master = master
        self.budget = budget
        self._pricing = pricing

    def solve(self, counts: Amounts, *, rounds: int) -> MasterSolution | None:
        """Adds columns until pricing finds none, or rounds or budget are used up. None when nothing was solved at all.

        counts: chunks by item type.
        """
        found: MasterSolution | None = None
        prices: list[float] = []
        while True:
            solution = self.master.solve(self.budget)
            if solution is None:
                return found
            found = solution
            prices.append(solution.price)
            stalled = len(prices) > _PATIENCE and prices[-_PATIENCE - 1] - prices[-1] < _PROGRESS * prices[-1]
            if len(prices) > rounds or stalled or self.budget.exhausted:
                return found
            if not self.master.add(self._pricing.columns(solution.dual_prices, counts, self.budget)):
                return found
