"""The best of several placements, where few enough chunks move to try more than one.

Chunks are placed in their order, without looking back (see `pack.py`). Now and then that finds no place, or a dearer one, where
another order or zone would do better. If few chunks move, every other way is tried (see `exhaustive_search.py`); if some more do,
other orders are. The first of equal answers wins. Large placements are made once, so they pay nothing for this.

Chunks without any place must not make the rest dearer by their number. So the rest is searched without them. In all orders
demands that are placed as a whole stay together. So do pending pods, whose order is kube-scheduler's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, permutations, product

import numpy as np

from reconciler.placement.arrays import PLENTY
from reconciler.placement.batches import RANK_OF, Batch
from reconciler.placement.engine.domains import order_of_spread
from reconciler.placement.engine.exhaustive_search import (
    MOST_WAYS,
    MOST_WAYS_OF_TRIALS,
    Search,
    least_price,
    score_of,
)
from reconciler.placement.engine.pack import Packer
from reconciler.placement.engine.state import State

Key = Callable[[Batch], float]
MOST_CHUNKS = 8
"""Up to this many chunks that do not stay where they were, every way is tried."""
MOST_BINS = 50
"""Up to this many existing bins, every way is tried: each bin is one more destination for every chunk."""
MOST_ORDERED = 200
"""Up to this many chunks that do not stay where they were, other orders are tried."""
MOST_PAIRS = 2000
"""The number of batches times bins up to which other orders are tried."""
MOST_ORDERS = 24
"""The number of orders of four batches. Up to this many orders, all are tried, so that the answer does not depend on names."""


def place_best(state: State, wanted: Sequence[Batch], *, most_price: int = PLENTY) -> dict[int, int]:
    """Places all batches; returns how many chunks of each found no place, by batch number (those with some).

    most_price: of new nodes, in billionths of a USD an hour. No other way that costs more is tried."""
    batches = order_of_spread(state, wanted)
    packer, saved = Packer(state, batches), state.save()
    missing = packer.place_all()
    refused = _refused(batches, missing)
    bins, moving = state.base + state.planned.count, packer.moving - sum(refused.values())
    # Preferences are given up in a fixed order, which price must not change.
    in_fixed_order = any(item.preferences for item in batches if item.number not in refused)
    is_large = moving > MOST_ORDERED or len(batches) * bins > MOST_PAIRS
    if in_fixed_order or is_large or not (missing or state.planned.count):
        return missing
    known, chosen = score_of(state, batches, missing), batches
    known = replace(known, price=min(known.price, most_price + 1))
    state.start_again(saved)
    left = packer.place_settled()
    if sum(left.values()) > MOST_CHUNKS or state.base > MOST_BINS:
        if missing or least_price(state, batches, left) <= most_price:
            for order in other_orders(state, batches, missing):
                state.start_again(saved)
                found = Packer(state, order).place_all()
                if (score := score_of(state, batches, found)) < known:
                    known, chosen, missing = score, order, found
        refused = _refused(batches, missing)
        state.start_again(saved)
        left = {number: count for number, count in packer.place_settled().items() if number not in refused}
        packer.unplaced |= refused
    if sum(left.values()) <= MOST_CHUNKS and state.base <= MOST_BINS:
        most_ways = MOST_WAYS if most_price == PLENTY else MOST_WAYS_OF_TRIALS
        search = Search(state, packer, batches, better_than=known, most_ways=most_ways)
        if search.found(left):
            # It always expects one more host; the packer knows when none can be made.
            return packer.place_rest(search.missing) if search.missing else {}
    state.start_again(saved)
    return Packer(state, chosen).place_all()


def _refused(batches: Sequence[Batch], missing: Mapping[int, int]) -> dict[int, int]:
    """The chunks of those batches of which nothing has a place, by batch number."""
    return {item.number: item.count for item in batches if not item.waits and missing.get(item.number) == item.count}


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
        order = [
            batch
            for wholes in ranks
            for whole in sorted(wholes, key=lambda whole: min(map(key, whole)))
            for batch in whole
        ]
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
