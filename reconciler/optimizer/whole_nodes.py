"""A lower bound on the price of few nodes, by an integer program in which chunks may be split and nodes may not.

Of few nodes the bound by columns may leave open most of one. Of many, the parts of nodes hardly count, and those of chunks do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reconciler.optimizer.master import EMPTY
from reconciler.optimizer.relaxation import Relaxation
from reconciler.optimizer.solver import UNBOUNDED, Floats, load_solver, run
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts

_MOST_VARIABLES = 1500
_MOST_BRANCHES = 400
"""After the first hundreds of branches the bound hardly moves."""


def whole_nodes_bound(relaxation: Relaxation, budget: WorkBudget) -> float:
    """USD an hour that no valid placement goes below; 0 where the program is too large, or nothing is found within the budget.

    By item type, resources count in sum, and so does how many of its chunks a node takes by themselves.
    """
    packing, demand = relaxation.packing, relaxation.demand
    bin_types = len(packing.bin_types)
    if bin_types + np.count_nonzero(packing.most_alone) > _MOST_VARIABLES:
        return 0.0
    highs, program = load_solver()
    for name, value in (("presolve", "on"), ("mip_max_nodes", _MOST_BRANCHES)):
        program.setOptionValue(name, value)
    for price in packing.bin_types.prices.tolist():
        program.addCol(price / 1e9, 0.0, UNBOUNDED, 0, *EMPTY)
    program.changeColsIntegrality(
        bin_types, np.arange(bin_types, dtype=np.int32), np.full(bin_types, highs.HighsVarType.kInteger, dtype=np.uint8)
    )
    demand.write(program)
    for bin_type, every in enumerate(packing.most_alone):
        items, first = np.flatnonzero(every), program.getNumCol()
        for item, most in zip(items.tolist(), every[items].tolist(), strict=True):
            rows = np.flatnonzero(demand.of_items[item]).astype(np.int32)
            program.addCol(0.0, 0.0, UNBOUNDED, len(rows), rows, demand.of_items[item][rows])
            _add_limit(program, bin_type, np.array([program.getNumCol() - 1]), np.array([1 / most]))
        for shares in packing.shares(bin_type):
            held = np.flatnonzero(shares[items])
            _add_limit(program, bin_type, first + held, shares[items][held])
    for pool, most in relaxation.most_nodes.items():
        nodes = np.flatnonzero(packing.bin_types.pools == pool).astype(np.int32)
        program.addRow(-UNBOUNDED, float(most), len(nodes), nodes, np.ones(len(nodes)))
    run(highs, program, budget, whole=True)
    bound = float(program.getInfo().mip_dual_bound)
    return bound if math.isfinite(bound) else 0.0


def _add_limit(program: Any, bin_type: int, chunks: Amounts, shares: Floats) -> None:
    """All that is on nodes of this bin type takes no more than there are of them."""
    program.addRow(
        -UNBOUNDED, 0.0, len(chunks) + 1, np.array([*chunks, bin_type], dtype=np.int32), np.array([*shares, -1.0])
    )
