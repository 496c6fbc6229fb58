"""The linear master problem of column generation: it mixes known patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.solver import UNBOUNDED, Floats, load_solver, run
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts

EMPTY = np.zeros(0, dtype=np.int32), np.zeros(0)
"""A row or a column without entries."""


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """price: USD an hour. amounts: nodes by pattern, with fractions. dual_prices: USD an hour of a chunk by item type. node_prices: USD
    an hour by NodePool, of one more node where those are limited."""

    price: float
    amounts: Floats
    dual_prices: Floats
    node_prices: Mapping[int, float]

    def surcharge(self, pools: Amounts) -> Floats:
        """What a node costs besides its price, by the NodePools of nodes."""
        return np.array([self.node_prices.get(pool, 0.0) for pool in pools.tolist()], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Rows:
    """What all nodes together must come to, and what room costs nothing. By row: least, at least so much; slack, what an amount adds that
    may be anything. By item type: of_items, what one chunk adds to each row; fits, how many of these alone the room takes; shares, what
    part of it one takes, by resource."""

    least: Floats
    of_items: Floats
    slack: Floats
    fits: Amounts
    shares: Floats

    @classmethod
    def of_counts(cls, counts: Amounts) -> Rows:
        """So many chunks of each item type, and no room."""
        none = np.zeros(len(counts), dtype=np.int64)
        return cls(
            counts.astype(np.float64), np.eye(len(counts)), none.astype(np.float64), none, np.zeros((len(counts), 0))
        )

    def write(self, program: Any) -> None:
        """As the first rows and columns of a program."""
        for least in self.least.tolist():
            program.addRow(least, UNBOUNDED, 0, *EMPTY)
        for _ in self.shares.T:
            program.addRow(-1.0, UNBOUNDED, 0, *EMPTY)
        used = np.flatnonzero(self.slack).astype(np.int32)
        if len(used):
            program.addCol(0.0, 0.0, UNBOUNDED, len(used), used, self.slack[used])
        for item in np.flatnonzero(self.fits).tolist():
            amounts = np.concatenate([self.of_items[item], -self.shares[item]])
            rows = np.flatnonzero(amounts).astype(np.int32)
            program.addCol(0.0, 0.0, float(self.fits[item]), len(rows), rows, amounts[rows])


class MasterProblem:
    """How many nodes of each pattern, fractions allowed, hold all chunks at the least price. most_nodes: by number of a NodePool
    that limits nodes."""

    def __init__(self, demand: Rows, most_nodes: Mapping[int, int] | None = None) -> None:
        most_nodes = most_nodes or {}
        self._highs, self._solver = load_solver()
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        self._demand = demand
        demand.write(self._solver)
        self._rows_of_pools = {pool: self._solver.getNumRow() + place for place, pool in enumerate(most_nodes)}
        self._first = self._solver.getNumCol()
        for most in most_nodes.values():
            self._solver.addRow(-float(most), UNBOUNDED, 0, *EMPTY)

    def add(self, patterns: Sequence[Pattern]) -> int:
        """Returns how many of the patterns were new."""
        added = 0
        for pattern in patterns:
            if pattern in self._known:
                continue
            self._known.add(pattern)
            self.patterns.append(pattern)
            numbers, counts = np.array(pattern.items, dtype=np.int64).T
            sums = counts @ self._demand.of_items[numbers]
            rows = np.flatnonzero(sums).astype(np.int32)
            amounts = sums[rows]
            if pattern.pool in self._rows_of_pools:
                rows, amounts = np.append(rows, np.int32(self._rows_of_pools[pattern.pool])), np.append(amounts, -1.0)
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
        duals = np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0)
        return MasterSolution(
            float(self._solver.getInfo().objective_function_value),
            np.array(solution.col_value, dtype=np.float64)[self._first :],
            self._demand.of_items @ duals[: len(self._demand.least)],
            {pool: float(duals[row]) for pool, row in self._rows_of_pools.items()},
        )
