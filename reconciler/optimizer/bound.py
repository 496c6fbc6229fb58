"""A lower bound on the price, by column generation with exact pricing.

Nodes may be split, but what each of them holds is whole chunks. At the master's dual prices no node's chunks are worth more than r
times what it costs (`knapsacks.py`). So the dual prices divided by r pay for no node too much, and what all chunks cost by them is
a bound. It is one before the master has all its columns too (Farley, 1990). With all of them r is one.

Where nodes are few, their parts count more than those of chunks, and `whole_nodes.py` has the higher bound.
"""

from __future__ import annotations

from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.knapsacks import Knapsacks
from reconciler.optimizer.master import MasterProblem
from reconciler.optimizer.pricing import Pricing
from reconciler.optimizer.relaxation import Relaxation
from reconciler.optimizer.whole_nodes import whole_nodes_bound
from reconciler.optimizer.work_budget import WorkBudget

_FIRST_ROUNDS = 100
"""Of greedy pricing, before any exact one."""
_ROUNDS = 3
"""Of greedy pricing after each exact one."""
_EXACT_ROUNDS = 30
_FEW_NODES = 20
_CLOSE_ENOUGH = 0.001
"""Part of the price by which the bound and the master may differ, as they do anyway by what `Knapsacks` leaves open."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum."""
    packing = relaxation.packing
    master = MasterProblem(packing.counts, relaxation.most_nodes)
    master.add(relaxation.nodes)
    master.add_room(relaxation.free, packing.requests, relaxation.fits)
    columns = ColumnGeneration(master, Pricing(packing), budget)
    knapsacks = Knapsacks(packing)
    solution = columns.solve(packing.counts, rounds=_FIRST_ROUNDS)
    best: float | None = None
    for _ in range(_EXACT_ROUNDS):
        if solution is None or budget.exhausted:
            break
        ratio, patterns = knapsacks.price(solution, budget)
        best = max(best or 0.0, solution.price / ratio)
        if best >= solution.price * (1 - _CLOSE_ENOUGH) or not master.add(patterns):
            break
        solution = columns.solve(packing.counts, rounds=_ROUNDS)
    if best is not None and len(relaxation.nodes) <= _FEW_NODES:
        best = max(best, whole_nodes_bound(relaxation, budget))
    return best
