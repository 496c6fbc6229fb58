"""The loop that fills nodes greedily: compiled where numba is there, else run as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from reconciler.placement.amounts import Amounts
from reconciler.placement.label_table import Mask
from reconciler.placement.loops.compiling import jit

GreedyFill = Callable[[Amounts, Mask, Amounts, Amounts, Amounts, Mask], Amounts]


@lru_cache(maxsize=1)
def greedy_fill() -> GreedyFill:
    compiled = jit()
    return fill_in_order if compiled is None else compiled(fill_in_order)


def fill_in_order(  # noqa: C901, PLR0917 - compiled code is one loop over plain arrays
    order: Amounts, admitted: Mask, requests: Amounts, capacity: Amounts, most: Amounts, conflicts: Mask
) -> Amounts:
    """How many chunks of each item type each node takes, when it takes as many as it can of one type after another.

    order: nodes × item types, which type comes when. admitted: nodes × item types, used up. requests: item types ×
    resources. capacity: nodes × resources, used up. most: by item type, on one node. conflicts: item types × item types.
    Returns counts: nodes × item types.
    """
    filled = order * 0
    smallest = [requests[:, resource].min() for resource in range(requests.shape[1])]
    for node in range(order.shape[0]):
        for step in range(order.shape[1]):
            item = order[node, step]
            if not admitted[node, item]:
                continue
            fits = most[item]
            for resource in range(requests.shape[1]):
                request = requests[item, resource]
                if request > 0:
                    if capacity[node, resource] < request:
                        fits = 0
                        break
                    fits = min(fits, capacity[node, resource] // request)
            if fits <= 0:
                continue
            filled[node, item] = fits
            full = False
            for resource in range(requests.shape[1]):
                capacity[node, resource] -= fits * requests[item, resource]
                # What some type asks nothing of may be short all along.
                full |= smallest[resource] > 0 and capacity[node, resource] < smallest[resource]
            if full:
                break
            for other in range(conflicts.shape[0]):
                if conflicts[item, other]:
                    admitted[node, other] = False
    return filled
