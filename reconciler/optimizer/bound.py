"""A lower bound on the price, by column generation with exact pricing.

Nodes may be split, but what each of them holds is whole chunks. Chunks are worth what the master's dual prices say, and an integer
program says how much of that a node holds at most. That bounds the price before the master has all its columns too (`columns.py`).

Of few nodes that may leave open most of one. So these are reckoned as whole ones too, with chunks that may be split.
"""

from __future__ import annotations

import numpy as np

from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.master import MasterProblem
from reconciler.optimizer.relaxation import Relaxation
from reconciler.optimizer.solver import LinearProgram
from reconciler.optimizer.spread_rows import FEW_NODES
from reconciler.optimizer.work_budget import WorkBudget

_CLOSED = 0.001
"""Part of the price by which the bound and the master may differ, as they do anyway by what `Knapsacks` leaves open."""
_FIRST_ROUNDS = 100
"""Of greedy pricing, before any exact one."""
_MOST_VARIABLES = 1500
"""Of the program for whole nodes."""
_MOST_BRANCHES = 400
"""After the first hundreds of branches the bound hardly moves."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum."""
    columns = ColumnGeneration(MasterProblem(relaxation.rows, relaxation.nodes), relaxation.packing, budget)
    solved = columns.solve_exactly(relaxation.packing.counts, rounds=_FIRST_ROUNDS, closed=_CLOSED)
    bounds = [bound for _, bound in solved]
    if bounds and len(relaxation.nodes) <= FEW_NODES:
        bounds.append(_bound_of_whole_nodes(relaxation, budget))
    return max(bounds, default=None)


def _bound_of_whole_nodes(relaxation: Relaxation, budget: WorkBudget) -> float:
    """0 where the program is too large, or nothing is found within the budget.

    Of each bin type it has the nodes and the chunks on all of them. What these chunks take in sum is no more than there is.
    """
    packing, rows = relaxation.packing, relaxation.rows
    kinds, items = np.nonzero(packing.most_alone)
    bin_types = len(packing.bin_types)
    if bin_types + len(items) > _MOST_VARIABLES:
        return 0.0
    here = kinds[:, None] == np.arange(bin_types)
    shares = np.array([packing.shares(number) for number in range(bin_types)])[kinds, items]
    of_items = (here[:, :, None] * shares[:, None]).reshape(len(items), -1)
    limits_of_items = -np.concatenate([of_items, np.diag(1 / packing.most_alone[kinds, items])], axis=1)
    limits_of_nodes = np.concatenate([np.repeat(np.eye(bin_types), shares.shape[1], axis=1), here.T], axis=1)
    limits = limits_of_nodes.shape[1]
    least = np.pad(rows.least, (0, limits))
    program = LinearProgram(least, presolve="on", mip_max_nodes=_MOST_BRANCHES)
    program.add(
        packing.bin_types.prices / 1e9,
        np.concatenate([rows.of_pools[packing.bin_types.pools], limits_of_nodes], axis=1),
    )
    program.add(np.zeros(len(items)), np.concatenate([rows.of_items[items], limits_of_items], axis=1))
    program.add(np.zeros(len(rows.free)), np.pad(rows.free, ((0, 0), (0, limits))), rows.most)
    program.solve(budget, whole=bin_types)
    return max(program.bound, 0.0)
