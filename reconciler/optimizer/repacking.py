"""Packs what the fast placement put on new nodes anew, for less.

Patterns are found by column generation and rounded to whole nodes. The fast placement's own nodes are patterns from the start,
so there is always a solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.optimizer.bin_types import BinTypes, bin_types_for
from reconciler.optimizer.bound import LowerBound, lower_bound
from reconciler.optimizer.columns import ColumnGeneration, MasterProblem
from reconciler.optimizer.item_types import PackingProblem, Pattern, packing_problem
from reconciler.optimizer.pricing import Pricing
from reconciler.optimizer.reassignment import Reassignment
from reconciler.optimizer.relaxation import relaxation_of
from reconciler.optimizer.rounding import FURTHER_RULES, RULES, rounded
from reconciler.optimizer.work_budget import CHEAP, MOST_FOR_BOUND, WorkBudget
from reconciler.placement.engine.state import State

FIRST_ROUNDS = 300
"""Of column generation for all chunks."""
OUT_OF_TIME = "the time for it was over"


@dataclass(frozen=True, slots=True)
class Outcome:
    """bound: USD an hour that the nodes cost at least, None when not found; reason: why the fast placement stands, "" when it does
    not; timed_out: whether the guard struck, so that another run may find something else."""

    bound: float | None
    reason: str = ""
    timed_out: bool = False


def repack(state: State, *, seconds_left: Callable[[], float]) -> Outcome:
    """Changes the planned nodes of the state where that makes them cheaper, else leaves it as it is. Raises `Invalid` when the
    solver cannot be loaded."""
    bound = lower_bound(relaxation_of(state), WorkBudget(seconds_left, most=MOST_FOR_BOUND))
    price = None if bound is None else bound.price
    problem = packing_problem(state)
    if not problem.item_types:
        return Outcome(price, "no planned node may be packed anew")
    budget = WorkBudget(seconds_left)
    found = packings(problem, bin_types_for(state, problem), bound, budget)
    if not found:
        return Outcome(price, OUT_OF_TIME if budget.timed_out else "the solver came to no end", budget.timed_out)
    reassignment = Reassignment(state, problem)
    reason = ""
    for patterns in found:
        reason = reassignment.apply(patterns)
        if not reason:
            break
    if reason and budget.timed_out:
        reason = f"{OUT_OF_TIME} and {reason}"
    return Outcome(price, reason, budget.timed_out)


def packings(
    problem: PackingProblem, bin_types: BinTypes, bound: LowerBound | None, budget: WorkBudget
) -> list[list[Pattern]]:
    """Those that were found, the cheapest first. Each has a pattern for each node, and together these hold each chunk once."""
    start = bin_types.first_dual_prices(problem) if bound is None else bound.dual_prices_of(problem)
    master = MasterProblem(problem.counts)
    master.add(problem.nodes)
    columns = ColumnGeneration(master, Pricing(problem, bin_types), budget)
    solution = columns.solve(problem.counts, rounds=FIRST_ROUNDS, start=start)
    if solution is None:
        return []
    found = [rounded(columns, solution, problem.counts, None)]
    for number, rule in enumerate((*RULES, *FURTHER_RULES)):
        if budget.exhausted or (number >= len(RULES) and budget.spent > CHEAP):
            break
        found.append(rounded(columns, solution, problem.counts, rule))
    return sorted(found, key=bin_types.price_of(problem))
