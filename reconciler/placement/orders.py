"""Other orders for batches of equal priority, in which more of them may find a place, or a cheaper one. Used by best.

Demands that are placed as a whole stay together, and so do pending pods, whose order is the right one for what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby

import numpy as np

from reconciler.placement.batches import Batch, rank_of
from reconciler.placement.state import State

Key = Callable[[Batch], float]


def other_orders(state: State, batches: Sequence[Batch], missing: Collection[int]) -> Iterator[list[Batch]]:
    """Those that found no place first; the largest first; those under most rules first; each only if it is new."""
    largest = np.maximum(state.blueprints.room.max(axis=0, initial=1), 1)

    def share(batch: Batch) -> float:
        return float((batch.needs.request / largest).max(initial=0))

    known = [list(batches)]
    keys: tuple[Key, ...] = (
        lambda batch: -float(batch.number in missing),
        lambda batch: -share(batch),
        lambda batch: -len(state.course(batch).rules) - share(batch) / 2,
    )
    for key in keys:
        order = _ordered(batches, key)
        if order not in known:
            known.append(order)
            yield order


def _ordered(batches: Sequence[Batch], key: Key) -> list[Batch]:
    """Equals stay in their order."""
    found: list[Batch] = []
    for _, equals in groupby(batches, key=rank_of):
        wholes: list[list[Batch]] = []
        for batch in equals:
            if wholes and batch.whole is not None and batch.whole == wholes[-1][0].whole:
                wholes[-1].append(batch)
            else:
                wholes.append([batch])
        wholes.sort(key=lambda whole: min(key(batch) for batch in whole))
        found += [batch for whole in wholes for batch in whole]
    return found
