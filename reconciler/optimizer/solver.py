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

    def __init__(self, highs: Any) -> None:
        self._highs = highs
        self._costs: list[float] = []
        self._upper_bounds: list[float] = []
        self._integers: list[int] = []
        self._row_lower: list[float] = []
        self._row_upper: list[float] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []

    @property
    def variables(self) -> int:
        return len(self._costs)

    def add_variable(self, cost: float, *, most: float = UNBOUNDED, integer: bool = False) -> int:
        """Returns the variable's number."""
        self._costs.append(cost)
        self._upper_bounds.append(most)
        if integer:
            self._integers.append(len(self._costs) - 1)
        return len(self._costs) - 1

    def add_row(self, lower: float, upper: float, terms: Sequence[tuple[int, float]]) -> None:
        """terms: numbers of variables and their coefficients."""
        self._row_lower.append(lower)
        self._row_upper.append(upper)
        self._columns += [column for column, value in terms if value]
        self._values += [float(value) for _, value in terms if value]
        self._starts.append(len(self._columns))

    def pass_to(self, solver: Any) -> None:
        program = self._highs.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._row_lower)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_ = np.zeros(len(self._costs))
        program.col_upper_ = np.array(self._upper_bounds)
        program.row_lower_, program.row_upper_ = np.array(self._row_lower), np.array(self._row_upper)
        program.a_matrix_.format_ = self._highs.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        program.a_matrix_.index_ = np.array(self._columns, dtype=np.int32)
        program.a_matrix_.value_ = np.array(self._values)
        solver.passModel(program)

    def integer_bound(self, solver: Any, budget: WorkBudget) -> float:
        """A lower bound on the cost with integers where they are asked for, of the program that the solver has; 0.0 when none is
        found within the budget."""
        integers = np.array(self._integers, dtype=np.int32)
        types = np.full(len(integers), self._highs.HighsVarType.kInteger, dtype=np.uint8)
        solver.changeColsIntegrality(len(integers), integers, types)
        solver.setOptionValue("mip_max_nodes", _MOST_BRANCHES)
        run(self._highs, solver, budget)
        bound = float(solver.getInfo().mip_dual_bound)
        return bound if math.isfinite(bound) else 0.0
