"""The entry to the package: a placement in the mode that is asked for, with how far it is from the least possible price."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from reconciler.model.placement import Placement
from reconciler.optimizer.repacking import NOTHING_CHEAPER, OUT_OF_TIME, Repacked, repack
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.place import Solution, place, solve
from reconciler.placement.problem import Problem

_ROUNDING = 1e-9
"""USD an hour: prices that differ by less are equal."""
_SOLVED_TO = 1e-7
"""Relative: a bound by linear programming is no more exact."""
_LARGE_GAP = 0.05
"""From here on the gap says more of the bound than of the placement."""


def _no_limit() -> float:
    return math.inf


def place_in_mode(
    problem: Problem, *, memory: Memory | None = None, seconds_left: Callable[[], float] = _no_limit
) -> Placement:
    """Where each chunk goes, in the mode that the options ask for: fast, or optimal.

    memory: of the placement before, so that only what changed is worked out again; seconds_left: what the guard leaves for the
    search, in seconds. Raises `Invalid` where the optimal mode cannot load its solver.
    """
    memory = memory or Memory()
    if not problem.options.optimal:
        return place(problem, memory=memory)
    return memory.recall(problem) or memory.keep(_optimal(problem, solve(problem, memory), seconds_left))


def _optimal(problem: Problem, solution: Solution, seconds_left: Callable[[], float]) -> Placement:
    """Never dearer than the fast placement, which stands where the other breaks a rule."""
    fast = solution.placement()
    if not fast.planned:
        return fast
    if not all(node.price_known for node in fast.planned):
        return _with(fast, "placement.mode optimal: some prices are not known: the fast placement stands")
    outcome = repack(solution.state, seconds_left=seconds_left)
    packed = fast if outcome.reason else solution.placement()
    reason = outcome.reason or _objection(packed, fast, problem)
    if reason:
        price = f"${_price(fast):.2f}/h{_gap(fast, outcome)}"
        return _with(fast, f"placement.mode optimal: {reason}: the fast placement stands, {price}")
    saved = f"new nodes cost ${_price(packed):.2f}/h instead of ${_price(fast):.2f}/h{_gap(packed, outcome)}"
    late = f"; {OUT_OF_TIME} before all was tried, and another run may find more" if outcome.timed_out else ""
    return replace(_with(packed, f"placement.mode optimal: {saved}{late}"), checked=True)


def _objection(packed: Placement, fast: Placement, problem: Problem) -> str:
    if not all(node.price_known for node in packed.planned):
        return "some prices are not known"
    if _price(packed) > _price(fast) - _ROUNDING:
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
    gap = math.ceil(max(0.0, _price(placement) / bound - 1) * 1000) / 1000
    if not gap:
        return ", the least possible"
    least = math.floor(bound * 100) / 100
    doubt = ", which may be out of reach" if gap > _LARGE_GAP else ""
    return f", at most {gap:.1%} over the least possible (not under ${least:.2f}/h{doubt})"


def _price(placement: Placement) -> float:
    return sum(node.price for node in placement.planned)


def _with(placement: Placement, sentence: str) -> Placement:
    return replace(placement, assumptions=tuple(sorted({*placement.assumptions, sentence})))
