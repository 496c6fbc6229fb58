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


class MasterProblem:
    """How many nodes of each pattern, fractions allowed, hold all chunks at the least price. counts: chunks by item type; most_nodes:
    by number of a NodePool that limits nodes."""

    def __init__(self, counts: Amounts, most_nodes: Mapping[int, int] | None = None) -> None:
        most_nodes = most_nodes or {}
        self._highs, self._solver = load_solver()
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        self._items = len(counts)
        self._rows_of_pools = {pool: len(counts) + place for place, pool in enumerate(most_nodes)}
        for least in (*counts.tolist(), *(-most for most in most_nodes.values())):
            self._solver.addRow(float(least), UNBOUNDED, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def add(self, patterns: Sequence[Pattern]) -> int:
        """Returns how many of the patterns were new."""
        added = 0
        for pattern in patterns:
            if pattern in self._known:
                continue
            self._known.add(pattern)
            self.patterns.append(pattern)
            entries = [*pattern.items]
            if pattern.pool in self._rows_of_pools:
                entries.append((self._rows_of_pools[pattern.pool], -1))
            rows = np.array([number for number, _ in entries], dtype=np.int32)
            amounts = np.array([count for _, count in entries], dtype=np.float64)
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
            np.array(solution.col_value, dtype=np.float64),
            duals[: self._items],
            {pool: float(duals[row]) for pool, row in self._rows_of_pools.items()},
        )

    def add_room(self, room: Amounts, requests: Amounts, fits: Amounts) -> None:
        """Room that costs nothing. fits: by item type, how many of these alone."""
        add_room(self._solver, room, requests, fits)


def add_room(program: Any, room: Amounts, requests: Amounts, fits: Amounts) -> None:
    """The same in any program whose first rows are the chunks of each item type."""
    first = program.getNumRow()
    for _ in room:
        program.addRow(-1.0, UNBOUNDED, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
    shares = requests / np.maximum(room, 1)
    for item in np.flatnonzero(fits).tolist():
        used = np.flatnonzero(shares[item])
        rows = np.array([item, *(first + used)], dtype=np.int32)
        program.addCol(0.0, 0.0, float(fits[item]), len(rows), rows, np.array([1.0, *-shares[item][used]]))
