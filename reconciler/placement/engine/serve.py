"""Fills planned nodes, makes them larger and adds new ones, with as much as possible in each compiled call.

The loops do in one call what `fill.py` and `open.py` do step by step in numpy.
"""

from __future__ import annotations

import numpy as np

from reconciler.placement.engine.grow import charge_growth, within_pools
from reconciler.placement.engine.host_caps import Task, host_caps
from reconciler.placement.engine.state import State
from reconciler.placement.loops.arrays import NEXT_NOTE, NODES, WAS_POSITION, WAS_TEMPLATE, Numbers
from reconciler.placement.offers.cheapest_sizes import SizeOptions

_NOT_FILLED: Numbers = np.zeros(0, dtype=np.int64)


def serve(
    state: State, task: Task, pools: tuple[int, ...], count: int, *, options: SizeOptions, filling: bool
) -> tuple[int, int]:
    """Places up to `count` chunks in three ways, one after the other. Not for pools with minValues.

    If `filling`, first on planned nodes as they are. Then planned nodes of the pools are made larger, while that costs no more
    than new nodes for the remaining chunks. Where the pools have limits only one is, since that changes what new nodes cost.
    Last, on one new node, where `options` know one that takes all remaining chunks.

    Returns how many chunks found a place, and what comes next for the others (see `arrays.py`). NEXT_NOTE comes only where the
    pools have limits.
    """
    planned, batch, placed = state.planned, task.batch, 0
    joined = options.compatibility.joined()
    growing = within_pools(state, joined, pools)
    limited = not state.limited.isdisjoint(pools)
    prices = options.mix_prices(count, state.kernel)
    while True:
        state.allocate_planned(1)
        caps = host_caps(state, task)
        filled, found, following = state.kernel.serve(
            planned.arrays,
            batch.arrays,
            (state.topology.hosts.table, state.base, caps.rules, caps.more),
            state.running_limits.now(),
            (joined if filling else _NOT_FILLED, growing, options.compatibility.bought_as, prices, options.new),
            planned.count,
            count - placed,
        )
        if found:
            placed += state.note_found(batch, found)
        if limited and found > filled:
            node, template, position = planned.found[[NODES, WAS_TEMPLATE, WAS_POSITION], found - 1].tolist()
            if template >= 0:  # below 0 the node is new, and its pool has no limits
                before = state.templates.list[template]
                charge_growth(state, node, before.offers.capacities[int(before.types[position])])
        if following != NEXT_NOTE or limited or placed == count:
            return placed, following
        filling = False
