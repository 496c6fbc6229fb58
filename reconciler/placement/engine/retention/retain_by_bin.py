"""An order in which all chunks can stay where they were, one bin of one batch after the other.

A pod with affinity to its own kind may come alone only while it is the first. Chunks that were placed in an order that switched
between demands can only stay in such an order.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.placement.batches import Batch
from reconciler.placement.engine.retention.retain_batch import Stays, retain_batch, stay_key, stays_for
from reconciler.placement.engine.state import State

_MOST_PIECES = 6
"""Up to this many pairs of a batch and a bin it was on, orders are searched. The work grows with the number of their subsets."""


def retain_by_bin(
    state: State,
    batches: Sequence[Batch],
    stays: Stays,
) -> bool:
    """Places all chunks of these batches where they were. False, with the state as it was, when no order was found.

    None is looked for where no pod has affinity: then the order of the batches decides.
    """
    pieces = [(batch, number, count) for batch in batches for number, count in stays.get(stay_key(batch), ())]
    constraint_sets = {batch.number: state.constraints(batch) for batch in batches}
    if len(pieces) > _MOST_PIECES or any(stays_for(stays, batch) > batch.count for batch in batches):
        return False
    if not any(constraints.affinity or constraints.host_affinity for constraints in constraint_sets.values()):
        return False
    tried: set[frozenset[int]] = set()

    def settle(left: frozenset[int]) -> bool:
        if not left:
            return True
        tried.add(left)
        for index in sorted(left):
            batch, number, count = pieces[index]
            saved = state.save()
            only = {stay_key(batch): [(number, count)]}
            stayed = retain_batch(state, batch, constraint_sets[batch.number], only)
            if stayed == count and left - {index} not in tried and settle(left - {index}):
                return True
            state.roll_back(saved)
        return False

    return settle(frozenset(range(len(pieces))))
