"""HiGHS, and linear programs as they are written down for it; the only module that knows the solver. And how much work it may do.

highspy is loaded when the optimal mode is used and not before. One thread, the simplex method and a fixed seed make equal programs
get equal answers.

Work is counted, not timed, so that equal input ends at the same place on any machine. Chunks that are looked at when nodes are filled
count, and steps of the solver weighted by their rows. The clock is only a guard for very slow machines. Where it strikes, another
run may find another answer, and the plan says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.model.errors import Invalid

MOST_FOR_SEARCH = 30_000_000
"""Units of less than a microsecond: about a third of the guard's default on two idle cores."""
MOST_FOR_BOUND = 10_000_000
"""Twenty times what 20,000 mixed pods take."""
_CELLS_PER_UNIT = 12
_LEAST_STEPS = 1000
"""The fewest steps of the solver in one call; with fewer, no program comes to its end."""


class WorkBudget:
    """seconds_left: what is left of the guard, in seconds; most: units of work in all."""

    def __init__(self, seconds_left: Callable[[], float], *, most: int = MOST_FOR_SEARCH) -> None:
        self._seconds_left = seconds_left
        self._left = most
        self.timed_out = False
        """Whether the guard has struck."""

    @property
    def exhausted(self) -> bool:
        return self._left <= 0 or self.seconds <= 0

    @property
    def seconds(self) -> float:
        seconds = max(0.0, self._seconds_left())
        self.timed_out |= seconds <= 0
        return seconds

    def solver_steps(self, rows: int) -> int:
        """How many steps the solver may take on a program with `rows` rows."""
        return max(_LEAST_STEPS, self._left // max(1, rows))

    def charge(self, *, cells: int = 0, steps: int = 0) -> None:
        """cells: nodes times the item types that were looked at for them. steps: of the solver, times the rows of its program."""
        self._left -= cells // _CELLS_PER_UNIT + steps


Floats = NDArray[np.float64]
_UNBOUNDED = 1e30
"""What HiGHS takes for infinity."""
_MOST_STEPS = 2**31 - 1
_OPTIONS: dict[str, str | int | float] = {
    "threads": 1,
    "random_seed": 1,
    "solver": "simplex",
    "presolve": "off",
    "mip_heuristic_run_feasibility_jump": False,  # takes a third of the time and finds nothing better
}


class LinearProgram:
    """The least cost at which each row comes to at least so much. Variables are 0 or more.

    least: by row. options: of the solver, where they differ from those of all programs. Raises `Invalid` where highspy cannot be
    imported.
    """

    def __init__(self, least: Floats, **options: str | float) -> None:
        try:
            import highspy
        except ImportError as error:
            raise Invalid(
                f"placement.mode is optimal, but the solver highspy cannot be loaded here: {error}",
                hint="install it (pip install highspy), or set placement.mode: fast",
            ) from error
        self._highs: Any = highspy
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
        self._whole = 0
        self._solver.silent()
        self.set(**_OPTIONS | options)
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
        self._solver.addRows(len(least), least, np.full(len(least), _UNBOUNDED), 0, *nothing)

    def set(self, **options: str | float) -> None:
        """Options of the solver."""
        for name, value in options.items():
            self._solver.setOptionValue(name, value)

    def add(self, costs: Floats, entries: Floats, most: Floats | None = None) -> None:
        """Variables. entries: variables × rows. most: of each, no limit without."""
        variables, rows = np.nonzero(entries)
        starts = np.searchsorted(variables, np.arange(len(costs))).astype(np.int32)
        upper = np.full(len(costs), _UNBOUNDED) if most is None else most
        amounts = len(rows), starts, rows.astype(np.int32), entries[variables, rows]
        self._solver.addCols(len(costs), costs, np.zeros(len(costs)), upper, *amounts)

    def require(self, least: Floats) -> None:
        """Sets the lower bounds of the first rows. They hold from the next solve on."""
        rows = np.arange(len(least), dtype=np.int32)
        self._solver.changeRowsBounds(len(rows), rows, least, np.full(len(rows), _UNBOUNDED))

    def cost(self, costs: Floats) -> None:
        """Sets the cost of each variable. It holds from the next solve on."""
        self._solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def solve(self, budget: WorkBudget, *, whole: int = 0) -> bool:
        """Whether an optimum was found within the budget. The solver's clock goes on from call to call. whole: how many
        of the first variables are whole numbers. A step then takes about as long as on a program with a row for each variable."""
        solver, kinds = self._solver, self._highs.HighsVarType
        if whole != self._whole:
            every = np.arange(max(whole, self._whole), dtype=np.int32)
            integrality = np.where(every < whole, int(kinds.kInteger), int(kinds.kContinuous)).astype(np.uint8)
            solver.changeColsIntegrality(len(every), every, integrality)
            self._whole = whole
        rows = solver.getNumCol() if whole else solver.getNumRow()
        solver.setOptionValue("time_limit", solver.getRunTime() + budget.seconds)
        solver.setOptionValue("simplex_iteration_limit", min(budget.solver_steps(rows), _MOST_STEPS))
        solver.run()
        budget.charge(steps=max(0, int(solver.getInfo().simplex_iteration_count)) * rows)
        return bool(solver.getModelStatus() == self._highs.HighsModelStatus.kOptimal)

    @property
    def least_cost(self) -> float:
        return float(self._solver.getInfo().objective_function_value)

    @property
    def bound(self) -> float:
        """What whole numbers cost at least, even where no optimum was found; below all where nothing is known."""
        bound = float(self._solver.getInfo().mip_dual_bound)
        return bound if math.isfinite(bound) else -math.inf

    @property
    def amounts(self) -> Floats:
        """By variable."""
        return np.array(self._solver.getSolution().col_value, dtype=np.float64)

    @property
    def dual_prices(self) -> Floats:
        """By row, what one more of it costs."""
        return np.maximum(np.array(self._solver.getSolution().row_dual, dtype=np.float64), 0.0)
