"""HiGHS, and linear programs as they are written down for it; the only module that knows the solver.

highspy is loaded when the optimizing mode is used and not before. One thread, the simplex method and a fixed seed make equal
programs get equal answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.model.errors import Invalid
from reconciler.optimizer.work_budget import WorkBudget

Floats = NDArray[np.float64]
UNBOUNDED = 1e30
"""What HiGHS takes for infinity."""
_MOST_STEPS = 2**31 - 1
_MOST_BRANCHES = 400
"""After the first hundreds of branches the bound hardly moves."""


def load_solver() -> tuple[Any, Any]:
    """The highspy module and a new solver. Raises `Invalid` where highspy cannot be imported."""
    try:
        import highspy  # noqa: PLC0415 - takes a while to load, and only this mode needs it
    except ImportError as error:
        raise Invalid(
            f"placement.mode is optimal, but the solver highspy cannot be loaded here: {error}",
            hint="install it (pip install highspy), or set placement.mode: fast",
            causes=(error,),
        ) from error
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    for name, value in (("threads", 1), ("random_seed", 1), ("solver", "simplex"), ("presolve", "off")):
        solver.setOptionValue(name, value)
    return highspy, solver


def run(highs: Any, solver: Any, budget: WorkBudget) -> bool:
    """Whether an optimum was found within the budget. The solver's clock goes on from call to call."""
    rows = solver.getNumRow()
    solver.setOptionValue("time_limit", solver.getRunTime() + budget.seconds)
    solver.setOptionValue("simplex_iteration_limit", min(budget.solver_steps(rows), _MOST_STEPS))
    solver.run()
    budget.charge_solving(max(0, int(solver.getInfo().simplex_iteration_count)), rows)
    return bool(solver.getModelStatus() == highs.HighsModelStatus.kOptimal)


class LinearProgram:
    """A program that minimizes cost: variables from zero up, and rows over them. Some variables may be integers."""

    def __init__(self) -> None:
        self._highs, self._solver = load_solver()
        self._solver.setOptionValue("presolve", "on")
        self._integers: list[int] = []

    @property
    def variables(self) -> int:
        return int(self._solver.getNumCol())

    def add_variable(self, cost: float, *, most: float = UNBOUNDED, integer: bool = False) -> int:
        """Returns the variable's number."""
        number = self.variables
        self._solver.addCol(cost, 0.0, most, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        if integer:
            self._integers.append(number)
        return number

    def add_row(self, lower: float, upper: float, terms: Sequence[tuple[int, float]]) -> None:
        """terms: numbers of variables and their coefficients."""
        columns = np.array([column for column, value in terms if value], dtype=np.int32)
        values = np.array([value for _, value in terms if value], dtype=np.float64)
        self._solver.addRow(lower, upper, len(columns), columns, values)

    def solve(self, budget: WorkBudget) -> tuple[float, Floats] | None:
        """The least cost and each variable's value; None when no optimum was found within the budget."""
        if not run(self._highs, self._solver, budget):
            return None
        values = np.array(self._solver.getSolution().col_value, dtype=np.float64)
        return float(self._solver.getInfo().objective_function_value), values

    def integer_bound(self, budget: WorkBudget) -> float:
        """A lower bound on the cost with integers where they are asked for; 0.0 when none is found within the budget."""
        integers = np.array(self._integers, dtype=np.int32)
        types = np.full(len(integers), self._highs.HighsVarType.kInteger, dtype=np.uint8)
        self._solver.changeColsIntegrality(len(integers), integers, types)
        self._solver.setOptionValue("mip_max_nodes", _MOST_BRANCHES)
        run(self._highs, self._solver, budget)
        bound = float(self._solver.getInfo().mip_dual_bound)
        return bound if math.isfinite(bound) else 0.0
