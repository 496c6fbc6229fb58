"""What may be together on one node, and what is worth most by the prices of the chunks: columns for the optimising mode.

Used by packings. A pattern is a size and how many chunks of each kind are on such a node. They are filled greedily, many sizes at
once, each with several opinions of what is scarce; so none is sure to be the best, but each is sure to fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reconciler.optimizer.effort import Effort
from reconciler.optimizer.filling import filling
from reconciler.optimizer.kinds import Movable, Pattern, most_of_each
from reconciler.optimizer.sizes import Sizes
from reconciler.placement.amounts import PLENTY, Amounts

Floats = NDArray[np.float64]
_GAIN = 1e-7
"""USD an hour: what a pattern must save to be worth a column; less is rounding."""


_LONGEST_REST = 7
"""Rounds for which a size is not asked at most, after it had nothing; where no other has anything either it is asked all the same."""


_FEW = 16
"""Kinds up to which nodes are also begun with each of them."""
_BEGINNINGS = 128
"""Of a node in all: the fewer kinds, the finer the steps for each."""


class Filler:
    """Fills nodes of every size with what is worth most. Remembers which sizes had nothing lately."""

    def __init__(self, movable: Movable, sizes: Sizes) -> None:
        self._movable = movable
        self._sizes = sizes
        self._asked = np.concatenate([movable.asked, movable.shares], axis=1)
        bounds = np.broadcast_to(movable.bounds, (len(sizes), len(movable.bounds)))
        self._rooms = np.concatenate([sizes.rooms, bounds], axis=1)
        self._most = most_of_each(movable)
        used = np.flatnonzero(movable.asked.any(axis=0))
        self._opinions = np.array(list(_opinions(len(used))), dtype=np.float64)
        room = np.maximum(sizes.rooms[:, used], 1)
        self._rest = np.zeros(len(sizes), dtype=np.int64)
        self._wait = np.zeros(len(sizes), dtype=np.int64)
        # sizes × opinions × kinds: how much of a node one chunk takes.
        self._burden: Floats = np.einsum("ow,skw->sok", self._opinions, movable.asked[None, :, used] / room[:, None, :])

    def best(self, worth: Floats, left: Amounts, effort: Effort) -> list[Pattern]:
        """One for each size that is asked, where there is one that is worth more than its price; nothing only where no size has
        any. worth: USD an hour for a chunk of each kind; left: how many of each there are."""
        chosen = np.flatnonzero((worth > 0) & (left > 0))
        able = self._sizes.takes[:, chosen].any(axis=1)
        now = able & (self._wait == 0)
        self._wait = np.maximum(self._wait - 1, 0)
        for asked in (now, able & ~now):
            found = self._best_of(np.flatnonzero(asked), chosen, worth, left, effort)
            if found:
                return found
        return []

    def _best_of(self, sizes: Amounts, chosen: Amounts, worth: Floats, left: Amounts, effort: Effort) -> list[Pattern]:
        if not len(sizes):
            return []
        filled = self._filled(worth, left, chosen, sizes)
        if len(chosen) <= _FEW:
            filled = np.concatenate([filled, self._begun(worth, left, chosen, sizes)], axis=1)
        effort.filled(filled.size)
        value = filled @ worth[chosen]
        best = value.argmax(axis=1)
        prices = self._sizes.prices[sizes] / 1e9
        good = np.asarray(value[np.arange(len(sizes)), best] - prices > _GAIN)
        self._rest[sizes] = np.where(good, 0, np.minimum(2 * self._rest[sizes] + 1, _LONGEST_REST))
        self._wait[sizes] = self._rest[sizes]
        found = []
        for place in np.flatnonzero(good).tolist():
            counts = filled[place, best[place]]
            there = np.flatnonzero(counts)
            pairs = tuple(zip(chosen[there].tolist(), counts[there].tolist(), strict=True))
            found.append(Pattern(pairs, int(sizes[place]), float(prices[place])))
        return found

    def _filled(self, worth: Floats, left: Amounts, chosen: Amounts, sizes: Amounts) -> Amounts:
        """By sizes, opinions and chosen kinds."""
        opinions = len(self._opinions)
        takes = np.repeat(self._sizes.takes[np.ix_(sizes, chosen)], opinions, axis=0)
        burden = self._burden[sizes][:, :, chosen].reshape(len(takes), len(chosen))
        score = np.where(takes, worth[chosen] / np.maximum(burden, 1e-12), -1.0)
        order = np.argsort(-score, axis=1, kind="stable")
        most = np.minimum(self._most[chosen], left[chosen])
        room = np.repeat(self._rooms[sizes], opinions, axis=0)
        apart = self._movable.apart[np.ix_(chosen, chosen)]
        filled = filling()(order, takes, self._asked[chosen], room, most, apart)
        return filled.reshape(len(sizes), opinions, len(chosen))

    def _begun(self, worth: Floats, left: Amounts, chosen: Amounts, sizes: Amounts) -> Amounts:
        """By sizes, beginnings and chosen kinds: of each kind in turn a part of what the node takes, whatever it is worth, and no
        more of it; the rest as by the first opinion. Among few kinds a node is often full only so."""
        asked, kinds = self._asked[chosen], len(chosen)
        steps = _BEGINNINGS // kinds
        most = np.minimum(self._most[chosen], left[chosen])
        wanted = np.maximum(asked, 1)
        fits = np.where(asked > 0, self._rooms[sizes][:, None, :] // wanted, PLENTY).min(axis=2)
        fits = np.where(self._sizes.takes[np.ix_(sizes, chosen)], np.clip(fits, 0, most), 0)
        alone = self._movable.apart[chosen].any(axis=1)
        parts = fits[:, :, None] * np.arange(steps) // steps  # sizes × kinds × parts
        parts = np.where(np.asarray(alone)[None, :, None], 0, parts)
        begun = np.zeros((len(sizes), kinds, steps, kinds), dtype=np.int64)
        able = np.broadcast_to(self._sizes.takes[np.ix_(sizes, chosen)][:, None, None, :], begun.shape).copy()
        every = np.arange(kinds)
        begun[:, every, :, every] = parts.transpose(1, 0, 2)
        able[:, every, :, every] = False
        rows = len(sizes) * kinds * steps
        first: Amounts = begun.reshape(rows, kinds)
        room = np.repeat(self._rooms[sizes], kinds * steps, axis=0) - first @ asked
        burden = self._burden[sizes][:, 0, chosen]
        order = np.argsort(-worth[chosen] / np.maximum(burden, 1e-12), axis=1, kind="stable")
        order = np.repeat(order, kinds * steps, axis=0)
        apart = self._movable.apart[np.ix_(chosen, chosen)]
        filled = filling()(order, able.reshape(rows, kinds), asked, room, most, apart)
        return np.asarray((filled + first).reshape(len(sizes), -1, kinds), dtype=np.int64)


def _opinions(resources: int) -> Iterable[Floats]:
    """Weights of the resources: each alone, all alike, and pairs of them in several proportions."""
    yield np.full(resources, 1 / resources)
    for number in range(resources):
        yield np.eye(resources)[number]
    for one, other in list(combinations(range(resources), 2))[:3]:
        for share in (0.5, 0.75, 0.25):
            yield share * np.eye(resources)[one] + (1 - share) * np.eye(resources)[other]
