"""The nodes that the optimising mode may choose from: types in the places where they cost least. Used by optimize.

Chunks that ask for labels of a node's own (not of the catalogue) share a node only with chunks that ask for the same, or for
none: so each such wish is a compartment, beside the one without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.optimizer.kinds import Movable, Pattern
from reconciler.placement.amounts import Amounts
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.requirements import ANYWHERE, Requirements


@dataclass(frozen=True, slots=True)
class Sizes:
    """One entry each. pools: number of the NodePool's offers; rooms: sizes × resources; prices: billionths of a USD an hour;
    takes: sizes × kinds, which kinds may be on such a node."""

    pools: Amounts
    rooms: Amounts
    prices: Amounts
    takes: Mask

    def __len__(self) -> int:
        return len(self.prices)

    def worths(self, movable: Movable) -> NDArray[np.float64]:
        """USD an hour for one chunk of each kind by the part of a node that it takes of what it takes most of, where that is
        cheapest."""
        parts = (movable.asked[None, :, :] / np.maximum(self.rooms, 1)[:, None, :]).max(axis=2)
        prices = np.where(self.takes, parts * self.prices[:, None] / 1e9, np.inf)
        return np.asarray(np.where(self.takes.any(axis=0), prices.min(axis=0), 0.0), dtype=np.float64)

    def price_of(self, movable: Movable) -> Callable[[Sequence[Pattern]], int]:
        """What such nodes cost together, in billionths of a USD an hour, when each is bought as the cheapest that holds it."""
        known: dict[tuple[tuple[int, int], ...], int] = {}

        def one(pattern: Pattern) -> int:
            if pattern.kinds not in known:
                kinds = [kind for kind, _ in pattern.kinds]
                counts = np.array([count for _, count in pattern.kinds], dtype=np.int64)
                used = (movable.asked[kinds] * counts[:, None]).sum(axis=0)
                able = self.takes[:, kinds].all(axis=1) & (self.rooms >= used).all(axis=1)
                known[pattern.kinds] = int(self.prices[able].min()) if able.any() else round(pattern.price * 1e9)
            return known[pattern.kinds]

        return lambda patterns: sum(one(pattern) for pattern in patterns)


def sizes_for(state: State, movable: Movable) -> Sizes:
    """Each type once for all kinds that can be together on it, in its cheapest place; without those that another one is
    no worse than in every respect."""
    pools: list[int] = []
    rooms: list[Amounts] = []
    prices: list[int] = []
    takes: list[Mask] = []
    for pool in sorted({kind.pool for kind in movable.kinds}):
        offers = state.offers[pool]
        for able in _compartments(state, movable, pool):
            numbers = np.flatnonzero(able)
            masks = np.array([movable.kinds[number].compatibility.rows(pool) for number in numbers.tolist()])
            for row in _cheapest_rows(offers.offerings.types_of, offers.prices, masks):
                taken = np.zeros(len(movable.kinds), dtype=np.bool_)
                taken[numbers] = masks[:, row]
                pools.append(pool)
                rooms.append(offers.room[offers.offerings.types_of[row]])
                prices.append(int(offers.prices[row]))
                takes.append(taken)
    return _useful(
        Sizes(
            np.array(pools, dtype=np.int64),
            np.array(rooms, dtype=np.int64).reshape(len(pools), len(state.columns.names)),
            np.array(prices, dtype=np.int64),
            np.array(takes, dtype=np.bool_).reshape(len(pools), len(movable.kinds)),
        )
    )


def _compartments(state: State, movable: Movable, pool: int) -> Iterable[Mask]:
    keys = state.offers[pool].offerings.table.keys
    relaxations: dict[Requirements, list[int]] = {}
    for number, kind in enumerate(movable.kinds):
        if kind.pool == pool:
            relaxations.setdefault(kind.compatibility.wanted.without(keys), []).append(number)
    anywhere = relaxations.pop(ANYWHERE, [])
    for members in [*relaxations.values(), []] if anywhere else relaxations.values():
        mask = np.zeros(len(movable.kinds), dtype=np.bool_)
        mask[[*anywhere, *members]] = True
        yield mask


def _cheapest_rows(types_of: Amounts, prices: Amounts, masks: Mask) -> list[int]:
    """masks: kinds × rows. Of rows of one type that the same kinds may be on, the cheapest; the first of equal ones."""
    found: dict[tuple[int, bytes], int] = {}
    for row in np.flatnonzero(masks.any(axis=0)).tolist():
        key = (int(types_of[row]), masks[:, row].tobytes())
        if key not in found or prices[row] < prices[found[key]]:
            found[key] = row
    return sorted(found.values())


def _useful(sizes: Sizes) -> Sizes:
    """Of two that are as good as each other the first stays."""
    keep = np.ones(len(sizes), dtype=np.bool_)
    order = np.lexsort((np.arange(len(sizes)), sizes.prices))
    rooms, takes = sizes.rooms[order], sizes.takes[order]
    for place in range(1, len(order)):
        better = (rooms[:place] >= rooms[place]).all(axis=1) & ~(takes[place] & ~takes[:place]).any(axis=1)
        keep[place] = not better.any()
    chosen = np.sort(order[keep])
    return Sizes(sizes.pools[chosen], sizes.rooms[chosen], sizes.prices[chosen], sizes.takes[chosen])
