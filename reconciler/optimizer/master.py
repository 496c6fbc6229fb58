"""The master of the optimising mode: the cheapest mix of the patterns known so far. Used by packings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.effort import Effort
from reconciler.optimizer.kinds import Pattern
from reconciler.optimizer.patterns import Floats
from reconciler.optimizer.solver import WITHOUT_END, loaded_solver, run
from reconciler.placement.amounts import Amounts


@dataclass(frozen=True, slots=True)
class Solved:
    """price: USD an hour; amounts: how many nodes of each pattern; worth: of one more chunk of each kind."""

    price: float
    amounts: Floats
    worth: Floats


class Master:
    """How many nodes of each pattern hold all chunks at the least price, parts of nodes allowed."""

    def __init__(self, counts: Amounts) -> None:
        self._highs, self._solver = loaded_solver()
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        for count in counts.tolist():
            self._solver.addRow(float(count), WITHOUT_END, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def add(self, patterns: Sequence[Pattern]) -> int:
        """Returns how many were new."""
        added = 0
        for pattern in patterns:
            if pattern in self._known:
                continue
            self._known.add(pattern)
            self.patterns.append(pattern)
            rows = np.array([number for number, _ in pattern.kinds], dtype=np.int32)
            amounts = np.array([count for _, count in pattern.kinds], dtype=np.float64)
            self._solver.addCol(pattern.price, 0.0, WITHOUT_END, len(rows), rows, amounts)
            added += 1
        return added

    def ask_for(self, counts: Amounts) -> None:
        for number, count in enumerate(counts.tolist()):
            self._solver.changeRowBounds(number, float(count), WITHOUT_END)

    def solve(self, effort: Effort) -> Solved | None:
        """None when the solver did not come to an end."""
        if not run(self._highs, self._solver, effort):
            return None
        solution = self._solver.getSolution()
        return Solved(
            float(self._solver.getInfo().objective_function_value),
            np.array(solution.col_value, dtype=np.float64),
            np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0),
        )
