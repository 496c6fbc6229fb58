"""The solver of the optimising mode, HiGHS, and linear programs as they are written down for it. Used by master and least; the
only module that knows it.

highspy is loaded when this mode is used and not before. One thread, the simplex method and a fixed seed: the same program
gets the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reconciler.model.errors import Invalid
from reconciler.optimizer.effort import Effort

WITHOUT_END = 1e30
_MOST_STEPS = 2**31 - 1
_MOST_BRANCHES = 400
"""Of the search for whole numbers: past the first hundreds the bound hardly moves."""


def loaded_solver() -> tuple[Any, Any]:
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


def run(highs: Any, solver: Any, effort: Effort) -> bool:
    """Whether it came to the end within what is left of the work. The solver's clock goes on from run to run."""
    rows = solver.getNumRow()
    solver.setOptionValue("time_limit", solver.getRunTime() + effort.seconds)
    solver.setOptionValue("simplex_iteration_limit", min(effort.steps(rows), _MOST_STEPS))
    solver.run()
    effort.solved(max(0, int(solver.getInfo().simplex_iteration_count)), rows)
    return bool(solver.getModelStatus() == highs.HighsModelStatus.kOptimal)


class Program:
    """A linear program as it is written down: columns from zero up, then rows. Some columns may be asked to be whole."""

    def __init__(self, highs: Any) -> None:
        self._highs = highs
        self._costs: list[float] = []
        self._most: list[float] = []
        self._whole: list[int] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []

    @property
    def columns(self) -> int:
        return len(self._costs)

    def column(self, cost: float, *, most: float = WITHOUT_END, whole: bool = False) -> int:
        self._costs.append(cost)
        self._most.append(most)
        if whole:
            self._whole.append(len(self._costs) - 1)
        return len(self._costs) - 1

    def row(self, lower: float, upper: float, terms: Sequence[tuple[int, float]]) -> None:
        self._lower.append(lower)
        self._upper.append(upper)
        self._columns += [column for column, value in terms if value]
        self._values += [float(value) for _, value in terms if value]
        self._starts.append(len(self._columns))

    def give(self, solver: Any) -> None:
        program = self._highs.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._lower)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_ = np.zeros(len(self._costs))
        program.col_upper_ = np.array(self._most)
        program.row_lower_, program.row_upper_ = np.array(self._lower), np.array(self._upper)
        program.a_matrix_.format_ = self._highs.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        program.a_matrix_.index_ = np.array(self._columns, dtype=np.int32)
        program.a_matrix_.value_ = np.array(self._values)
        solver.passModel(program)

    def whole_bound(self, solver: Any, effort: Effort) -> float:
        """What the program, which the solver has, cannot go below when those columns are whole that are to be; 0.0 where the
        solver finds nothing out in the work that it has."""
        whole = np.array(self._whole, dtype=np.int32)
        kinds = np.full(len(whole), self._highs.HighsVarType.kInteger, dtype=np.uint8)
        solver.changeColsIntegrality(len(whole), whole, kinds)
        solver.setOptionValue("mip_max_nodes", _MOST_BRANCHES)
        run(self._highs, solver, effort)
        bound = float(solver.getInfo().mip_dual_bound)
        return bound if math.isfinite(bound) else 0.0
