"""HiGHS, and linear programs as they are written down for it; the only module that knows the solver.

highspy is loaded when the optimal mode is used and not before. One thread, the simplex method and a fixed seed make equal
programs get equal answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.model.errors import Invalid
from reconciler.optimizer.work_budget import WorkBudget

Floats = NDArray[np.float64]
UNBOUNDED = 1e30
"""What HiGHS takes for infinity."""
_MOST_STEPS = 2**31 - 1


def load_solver() -> tuple[Any, Any]:
    """The highspy module and a new solver. Raises `Invalid` where highspy cannot be imported."""
    try:
        import highspy  # noqa: PLC0415 - takes a while to load, and only this mode needs it
    except ImportError as error:
        raise Invalid(
            f"placement.mode is optimal, but the solver highspy cannot be loaded here: {error}",
            hint="install it (pip install highspy), or set placement.mode: fast",
        ) from error
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    options: dict[str, str | int] = {"threads": 1, "random_seed": 1, "solver": "simplex", "presolve": "off"}
    options["mip_heuristic_run_feasibility_jump"] = False  # takes a third of the time and finds nothing better
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return highspy, solver


def run(highs: Any, solver: Any, budget: WorkBudget, *, whole: bool = False) -> bool:
    """Whether an optimum was found within the budget. The solver's clock goes on from call to call. whole: variables are whole
    numbers, where a step takes about as long as on a program with a row for each of them."""
    rows = solver.getNumCol() if whole else solver.getNumRow()
    solver.setOptionValue("time_limit", solver.getRunTime() + budget.seconds)
    solver.setOptionValue("simplex_iteration_limit", min(budget.solver_steps(rows), _MOST_STEPS))
    solver.run()
    budget.charge_solving(max(0, int(solver.getInfo().simplex_iteration_count)), rows)
    return bool(solver.getModelStatus() == highs.HighsModelStatus.kOptimal)
