"""Other orders of batches of equal priority, in which more chunks may find a place, or a cheaper one.

Demands that are placed as a whole stay together. So do pending pods, whose order is kube-scheduler's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, permutations, product

import numpy as np

from reconciler.placement.batches import RANK_OF, Batch
from reconciler.placement.engine.state import State

Key = Callable[[Batch], float]
MOST_ORDERS = 24
"""The number of orders of four batches. Up to so many orders all are tried, so that the answer does not depend on names."""


def other_orders(state: State, batches: Sequence[Batch], missing: Collection[int]) -> Iterator[list[Batch]]:
    """All other orders, where they are few. Else three, each only if it is new: those without a place first, the largest first,
    those under most rules first."""
    ranks = [list(_wholes(equals)) for _, equals in groupby(batches, key=RANK_OF)]
    if math.prod(math.factorial(len(wholes)) for wholes in ranks) <= MOST_ORDERS:
        # The first permutation is the present order.
        for chosen in [*product(*map(permutations, ranks))][1:]:
            yield list(chain.from_iterable(chain.from_iterable(chosen)))
        return
    largest = np.maximum(state.templates.room.max(axis=0, initial=1), 1)

    def share(batch: Batch) -> float:
        return float((batch.needs.request / largest).max(initial=0))

    known = [list(batches)]
    keys: tuple[Key, ...] = (
        lambda batch: -float(batch.number in missing),
        lambda batch: -share(batch),
        lambda batch: -len(state.constraints(batch).rules) - share(batch) / 2,
    )
    for key in keys:
        order = [batch for wholes in ranks for whole in _ordered(wholes, key) for batch in whole]
        if order not in known:
            known.append(order)
            yield order


def _wholes(equals: Iterable[Batch]) -> list[list[Batch]]:
    """Batches that are placed one by one, and those that are placed as a whole, together."""
    wholes: list[list[Batch]] = []
    for batch in equals:
        if wholes and batch.whole is not None and batch.whole == wholes[-1][0].whole:
            wholes[-1].append(batch)
        else:
            wholes.append([batch])
    return wholes


def _ordered(wholes: Sequence[list[Batch]], key: Key) -> list[list[Batch]]:
    """Sorts by the key; equals keep their order."""
    return sorted(wholes, key=lambda whole: min(key(batch) for batch in whole))
