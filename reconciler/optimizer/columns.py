"""Column generation: a linear master problem mixes known patterns, and pricing looks for patterns that would make it cheaper.

The master's dual prices say what one more chunk of each item type would cost. A pattern whose chunks are worth more than its
node costs lowers the master's price, so it becomes a column. See Gilmore and Gomory (1961) on the cutting-stock problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.packing import Packing, Pattern
from reconciler.optimizer.pricing import Knapsacks, MasterSolution, Pricing
from reconciler.optimizer.solver import Floats, LinearProgram, WorkBudget
from reconciler.placement.amounts import Amounts


@dataclass(frozen=True, slots=True)
class Rows:
    """What all nodes together must come to, and what helps and costs nothing.

    least: by row, at least so much. of_items: item types × rows, what one chunk adds. of_pools: NodePools × rows, what one node adds.
    free: variables × rows, what else adds to them. most: of each of these variables.
    """

    least: Floats
    of_items: Floats
    of_pools: Floats
    free: Floats
    most: Floats

    @classmethod
    def of_counts(cls, counts: Amounts, pools: int) -> Rows:
        """So many chunks of each item type, on nodes of so many NodePools."""
        nothing = np.zeros((pools, len(counts)))
        return cls(counts.astype(np.float64), np.eye(len(counts)), nothing, nothing[:0], np.zeros(0))


def held_by(patterns: Sequence[Pattern], item_types: int) -> Amounts:
    """Patterns × item types."""
    held = np.zeros((len(patterns), item_types), dtype=np.int64)
    for row, pattern in enumerate(patterns):
        for item, count in pattern.items:
            held[row, item] = count
    return held


class MasterProblem:
    """How many nodes of each pattern, fractions allowed, hold all chunks at the least price."""

    def __init__(self, rows: Rows, patterns: Iterable[Pattern]) -> None:
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        self._rows = rows
        self._program = LinearProgram(rows.least)
        self._program.add(np.zeros(len(rows.free)), rows.free, rows.most)
        self.add(patterns)

    def add(self, patterns: Iterable[Pattern]) -> int:
        """Returns how many of the patterns were new."""
        new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in self._known]
        pools = np.array([pattern.pool for pattern in new], dtype=np.int64)
        entries = held_by(new, len(self._rows.of_items)) @ self._rows.of_items + self._rows.of_pools[pools]
        self._program.add(np.array([pattern.price for pattern in new]), entries)
        self._known.update(new)
        self.patterns += new
        return len(new)

    def require(self, counts: Amounts) -> None:
        """From now on, place so many chunks of each item type."""
        self._program.require(counts.astype(np.float64))

    def solve(self, budget: WorkBudget) -> MasterSolution | None:
        """None when no optimum was found within the budget."""
        program = self._program
        if not program.solve(budget):
            return None
        amounts, duals = program.amounts[len(self._rows.free) :], program.dual_prices
        return MasterSolution(program.least_cost, amounts, self._rows.of_items @ duals, -self._rows.of_pools @ duals)


_PROGRESS = 1e-5
"""Part of the price by which it must fall within `_PATIENCE` rounds for more rounds to be worth it."""
_PATIENCE = 20
_EXACT_ROUNDS = 30
_FEWEST_BRANCHES = 200
_MOST_BRANCHES = 3200
"""More of them are tried when there are no more columns, but the programs leave open whether there might be."""
_CLOSED = 0.001
_ROUNDS = 3
"""Of greedy pricing after each exact one."""


class ColumnGeneration:
    """The master problem together with the pricing that finds columns for it."""

    def __init__(
        self, master: MasterProblem, packing: Packing, budget: WorkBudget, pricing: Pricing | None = None
    ) -> None:
        self.master = master
        self.budget = budget
        self.packing = packing
        self._pricing = pricing or Pricing(packing)

    def only(self, patterns: Sequence[Pattern], counts: Amounts) -> ColumnGeneration:
        """The same for a part of the chunks, with these patterns to begin with."""
        rows = Rows.of_counts(counts, self.packing.pools)
        return ColumnGeneration(MasterProblem(rows, patterns), self.packing, self.budget, self._pricing)

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
            if not self.master.add(self._pricing.columns(solution, counts, self.budget)):
                return found

    def solve_exactly(
        self, counts: Amounts, *, rounds: int, exact: int = _EXACT_ROUNDS, closed: float = 0.0
    ) -> Iterator[tuple[MasterSolution, float]]:
        """The same with exact pricing when greedy pricing is done, round by round, with a bound in USD an hour that each proves.

        It takes many times as long. No node's chunks are worth more than r times what it costs. So the dual prices divided by r pay
        for no node too much, and what all chunks cost by them is a bound (Farley, 1990). With all columns r is one. It ends when a bound
        is within `closed` of the price.
        """
        knapsacks, branches = Knapsacks(self.packing), _FEWEST_BRANCHES
        solution = self.solve(counts, rounds=rounds)
        for _ in range(exact):
            if solution is None or self.budget.exhausted:
                return
            ratio, patterns = knapsacks.price(solution, self.budget, branches=branches)
            yield solution, solution.price / ratio
            if ratio <= 1 + closed:
                return
            if self.master.add(patterns):
                solution = self.solve(counts, rounds=_ROUNDS)
            elif ratio > 1 + _CLOSED and branches < _MOST_BRANCHES:
                branches *= 4
            else:
                return
