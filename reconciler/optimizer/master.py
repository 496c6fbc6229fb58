"""The linear master problem of column generation: it mixes known patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.solver import Floats, LinearProgram
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """price: USD an hour. amounts: nodes by pattern, with fractions. dual_prices: USD an hour of a chunk by item type. surcharges: USD an
    hour of a node by NodePool, beside its price, where their number is limited."""

    price: float
    amounts: Floats
    dual_prices: Floats
    surcharges: Floats


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
