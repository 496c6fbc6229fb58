"""The entry to the package: the optimal placement, with how far it is from the least possible price.

It packs what the fast placement put on new nodes anew, for less. Patterns are found by column generation and rounded to
whole nodes. The fast placement's own nodes are patterns from the start, so there is always a solution. Nodes that the linear master has
nearly whole are taken, the rest is solved again, and so on until every chunk has a node. The last nodes to be taken fit badly. So a few
nodes at a time are packed anew, those with much waste among others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.placement import Placement
from reconciler.optimizer.bound import lower_bound, relaxation_of
from reconciler.optimizer.columns import ColumnGeneration, MasterSolution, held_by
from reconciler.optimizer.packing import Packing, Pattern
from reconciler.optimizer.planned_chunks import PackingProblem, packing_problem, reassign
from reconciler.optimizer.solver import MOST_FOR_BOUND, WorkBudget
from reconciler.placement.arrays import Amounts
from reconciler.placement.cache import Cache
from reconciler.placement.checker.violations import violations
from reconciler.placement.engine.state import State
from reconciler.placement.place import Solution, solve
from reconciler.placement.problem import Problem

_ROUNDING = 1e-9
"""USD an hour: prices that differ by less are equal."""
_SOLVED_TO = 1e-7
"""Relative: a bound by linear programming is no more exact."""
_LARGE_GAP = 0.05
"""From here on the gap says more of the bound than of the placement."""


_NEARLY_WHOLE = 0.7
"""Fraction of a node from which it is taken whole."""
_ROUNDS = 3
"""Of column generation after each taking of whole nodes."""
_FEW = 10
"""Nodes that are packed anew together: of more, fewer attempts find something, and each takes longer."""
_ATTEMPTS = 20
_FIRST_ROUNDS = 300
"""Of column generation for all chunks."""
_FEW_ITEM_TYPES = 16
"""Below this size, greedy orders often miss the counts that fill a node, and exact pricing takes next to no time."""
_EXACT_ROUNDS, _MOST_EXACT_ROUNDS = 1, 30
"""Of exact pricing: of many item types and of few. The first one of them saves most."""
OUT_OF_TIME = "the time for it was over"
NOTHING_CHEAPER = "nothing cheaper was found"


def place_optimally(problem: Problem, *, cache: Cache, seconds_left: Callable[[], float]) -> Placement:
    """Where each chunk goes, for the least price that the search finds. Raises `Invalid` if its solver cannot be loaded.

    cache: the previous placements, so that only what changed is computed again. seconds_left: what the search may still take.
    """
    return cache.placement(problem, lambda: _optimal(problem, solve(problem, cache), seconds_left))


def _optimal(problem: Problem, solution: Solution, seconds_left: Callable[[], float]) -> Placement:
    """Never dearer than the fast placement, which stands where the other breaks a rule."""
    fast = solution.placement()
    if not fast.planned:
        return fast
    if not fast.price_known:
        return _with(fast, "placement.mode optimal: some prices are not known: the fast placement stands")
    outcome = repack(solution.state, seconds_left=seconds_left)
    packed = fast if outcome.reason else solution.placement()
    reason = outcome.reason or _objection(packed, fast, problem)
    if reason:
        price = f"${fast.price:.2f}/h{_gap(fast, outcome)}"
        return _with(fast, f"placement.mode optimal: {reason}: the fast placement stands, {price}")
    saved = f"new nodes cost ${packed.price:.2f}/h instead of ${fast.price:.2f}/h{_gap(packed, outcome)}"
    late = f"; {OUT_OF_TIME} before all was tried, and another run may find more" if outcome.timed_out else ""
    return replace(_with(packed, f"placement.mode optimal: {saved}{late}"), checked=True)


def _objection(packed: Placement, fast: Placement, problem: Problem) -> str:
    if not packed.price_known:
        return "some prices are not known"
    if packed.price > fast.price - _ROUNDING:
        return NOTHING_CHEAPER
    return "what was cheaper broke a rule" if violations(problem, packed) else ""


def _gap(placement: Placement, outcome: Repacked) -> str:
    """The true least price lies between the bound and what was found.

    The price is shown to the nearest cent. The bound is cut to cents and the gap goes up, so that neither claims more than is
    known. Nor does the bound ever look dearer than the price.
    """
    if outcome.bound is None or outcome.bound <= 0:
        return ""
    bound = outcome.bound * (1 + _SOLVED_TO)
    gap = math.ceil(max(0.0, placement.price / bound - 1) * 1000) / 1000
    if not gap:
        return ", the least possible"
    least = math.floor(bound * 100) / 100
    doubt = ", which may be out of reach" if gap > _LARGE_GAP else ""
    return f", at most {gap:.1%} over the least possible (not under ${least:.2f}/h{doubt})"


def _with(placement: Placement, sentence: str) -> Placement:
    return replace(placement, assumptions=tuple(sorted({*placement.assumptions, sentence})))


def cost(patterns: Sequence[Pattern]) -> tuple[int, int]:
    """In billionths of a USD an hour; of equals, fewer nodes are better."""
    return round(sum(pattern.price for pattern in patterns) * 1e9), len(patterns)


def rounded(columns: ColumnGeneration, solution: MasterSolution) -> list[Pattern] | None:
    """A pattern for each node; together they hold each chunk once. None when the budget was over before.

    solution: the master's for all chunks.
    """
    patterns, left = columns.patterns, columns.left.copy()
    chosen: list[Pattern] = []
    while True:
        taken = len(chosen)
        whole = np.floor(solution.amounts + 1 - _NEARLY_WHOLE).astype(np.int64)
        for number in np.flatnonzero(whole).tolist():
            chosen += _taken(columns.packing, patterns[number], int(whole[number]), left)
        if len(chosen) == taken:
            most = np.argsort(-solution.amounts, kind="stable").tolist()
            full = (number for number in most if all(count <= left[item] for item, count in patterns[number].items))
            chosen += _taken(columns.packing, patterns[next(full, most[0])], 1, left)
        if not left.any():
            return chosen
        columns.require(left)
        again = columns.solve(rounds=_ROUNDS)
        if again is None or columns.budget.exhausted:
            return None
        solution = again


def improved(columns: ColumnGeneration, solution: MasterSolution, nodes: Sequence[Pattern]) -> list[Pattern]:
    """The same chunks on cheaper nodes, where some are found within the budget. solution: the master's for all chunks."""
    known, prices = columns.patterns, solution.dual_prices
    held = held_by(known, len(prices))
    best = list(nodes)
    for attempt in range(_ATTEMPTS):
        amounts = held_by(best, len(prices))
        waste = np.array([pattern.price for pattern in best]) - amounts @ prices
        numbers = np.argsort(-waste, kind="stable")[_chosen(len(best), attempt)].tolist()
        few, counts = [best[number] for number in numbers], amounts[numbers].sum(axis=0)
        fitting = np.flatnonzero((held <= counts).all(axis=1)).tolist()
        part = columns.only([*few, *[known[number] for number in fitting]], counts)
        again = part.solve(rounds=2 * _ROUNDS)
        if again is None or part.budget.exhausted:
            break
        found = rounded(part, again) if round(again.price * 1e9) < cost(few)[0] else None
        if found is not None and cost(found) < cost(few):
            best = [pattern for number, pattern in enumerate(best) if number not in set(numbers)] + found
    return best


def _chosen(nodes: int, attempt: int) -> list[int]:
    """Every other time evenly from all, and else those with most waste, and as many others."""
    if attempt % 2:
        step = max(1, nodes // _FEW)
        return list(range(attempt // 2 % step, nodes, step))
    half = _FEW // 2
    start = half + attempt // 2 * half % max(1, nodes - _FEW)
    return [*range(min(half, nodes)), *range(start, min(start + half, nodes))]


def _taken(packing: Packing, pattern: Pattern, nodes: int, left: Amounts) -> list[Pattern]:
    """Never more of an item type than is left: the last of several equal nodes then holds fewer chunks, and may be smaller."""
    found = []
    for _ in range(nodes):
        counts = [(item, min(count, int(left[item]))) for item, count in pattern.items]
        held = tuple((item, count) for item, count in counts if count)
        if held:
            found.append(pattern if held == pattern.items else packing.cheapest(held))
        for item, count in held:
            left[item] -= count
    return found


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
    columns = ColumnGeneration(packing, problem.nodes, budget)
    exact = _EXACT_ROUNDS if len(packing.counts) > _FEW_ITEM_TYPES else _MOST_EXACT_ROUNDS
    list(columns.solve_exactly(rounds=_FIRST_ROUNDS, exact=exact if packing.shares_say_all else 0))
    solution = columns.solve(rounds=0)
    if solution is None:
        return []
    first = rounded(columns, solution) or list(problem.nodes)
    # From these even where the fast placement costs less: the columns that they are made of leave more to gain.
    better = improved(columns, solution, first)
    return [better, first]
