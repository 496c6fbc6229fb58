"""Packs what the fast placement put on new nodes anew, for less.

Patterns are found by column generation and rounded to whole nodes. The fast placement's own nodes are patterns from the start,
so there is always a solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.bound import lower_bound
from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.item_types import PackingProblem, packing_problem
from reconciler.optimizer.master import MasterProblem, Rows
from reconciler.optimizer.reassignment import reassign
from reconciler.optimizer.relaxation import relaxation_of
from reconciler.optimizer.rounding import cost, improved, rounded
from reconciler.optimizer.work_budget import MOST_FOR_BOUND, WorkBudget
from reconciler.placement.engine.state import State

_FIRST_ROUNDS = 300
"""Of column generation for all chunks."""
_FEW_ITEM_TYPES = 16
"""Up to so many, a node is often full only with counts that no greedy order finds, and exact pricing takes next to no time."""
_EXACT_ROUNDS, _MOST_EXACT_ROUNDS = 1, 30
"""Of exact pricing: of many item types and of few. The first one of them saves most."""
OUT_OF_TIME = "the time for it was over"
NOTHING_CHEAPER = "nothing cheaper was found"


@dataclass(frozen=True, slots=True)
class Repacked:
    """bound: USD an hour that the nodes cost at least, None when not found. reason: why the fast placement stands, "" when it does
    not. timed_out: whether the guard struck, so that another run may find something else."""

    bound: float | None
    reason: str = ""
    timed_out: bool = False


def repack(state: State, *, seconds_left: Callable[[], float]) -> Repacked:
    """Changes the planned nodes of the state to cheaper ones. Where it gives a reason, the state is no longer of use. Raises
    `Invalid` when the solver cannot be loaded."""
    budget, before = WorkBudget(seconds_left), relaxation_of(state)
    reason = _packed(state, budget)
    bound = lower_bound(before if reason else relaxation_of(state), WorkBudget(seconds_left, most=MOST_FOR_BOUND))
    return Repacked(bound, reason, budget.timed_out)


def _packed(state: State, budget: WorkBudget) -> str:
    """Why the fast placement stands; "" when the state has cheaper nodes now."""
    problem = packing_problem(state)
    if not problem.nodes:
        return "no planned node may be packed anew"
    found = packings(problem, budget)
    if not found:
        return OUT_OF_TIME if budget.timed_out else "the solver came to no end"
    reason = ""
    for patterns in found:
        reason = NOTHING_CHEAPER if cost(patterns) >= cost(problem.nodes) else reassign(state, problem, patterns)
        if not reason:
            return ""
    return f"{OUT_OF_TIME} and {reason}" if budget.timed_out else reason


def packings(problem: PackingProblem, budget: WorkBudget) -> list[list[Pattern]]:
    """Those that were found, the cheapest first. Each has a pattern for each node, and together these hold each chunk once."""
    packing = problem.packing
    master = MasterProblem(Rows.of_counts(packing.counts, packing.pools), problem.nodes)
    columns = ColumnGeneration(master, packing, budget)
    exact = _EXACT_ROUNDS if len(packing.counts) > _FEW_ITEM_TYPES else _MOST_EXACT_ROUNDS
    exactly = columns.solve_exactly(packing.counts, rounds=_FIRST_ROUNDS, exact=exact if packing.shares_say_all else 0)
    list(exactly)
    solution = columns.solve(packing.counts, rounds=0)
    if solution is None:
        return []
    first = rounded(columns, solution, packing.counts) or list(problem.nodes)
    # From these even where the fast placement costs less: the columns that they are made of leave more to gain.
    better = improved(columns, solution, first)
    return [better, first]
