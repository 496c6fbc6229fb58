"""A lower bound on the price, by column generation with exact pricing.

Nodes may be split, but what each of them holds is whole chunks. Chunks are worth what the master's dual prices say, and an integer
program says how much of that a node holds at most. That bounds the price before the master has all its columns too (`columns.py`).

Where nodes are few, their parts count more than those of chunks, and `whole_nodes.py` has the higher bound.
"""

from __future__ import annotations

from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.master import MasterProblem
from reconciler.optimizer.relaxation import Relaxation
from reconciler.optimizer.spread_rows import FEW_NODES
from reconciler.optimizer.whole_nodes import whole_nodes_bound
from reconciler.optimizer.work_budget import WorkBudget

_FIRST_ROUNDS = 100
"""Of greedy pricing, before any exact one."""
_CLOSE_ENOUGH = 0.001
"""Part of the price by which the bound and the master may differ, as they do anyway by what `Knapsacks` leaves open."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum."""
    packing = relaxation.packing
    master = MasterProblem(relaxation.demand, relaxation.most_nodes)
    master.add(relaxation.nodes)
    columns = ColumnGeneration(master, packing, budget)
    best: float | None = None
    for solution, bound in columns.solve_exactly(packing.counts, rounds=_FIRST_ROUNDS):
        best = max(best or 0.0, bound)
        if best >= solution.price * (1 - _CLOSE_ENOUGH):
            break
    if best is not None and len(relaxation.nodes) <= FEW_NODES:
        best = max(best, whole_nodes_bound(relaxation, budget))
    return best
