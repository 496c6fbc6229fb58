"""What may be together on one node, and what is worth most by the prices of the chunks: columns for the optimising mode.

Used by optimize. A pattern is a size and how many chunks of each kind are on such a node. They are filled greedily, all sizes at once,
each with several opinions of what is scarce; so none is sure to be the best, but each is sure to fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.label_table import Amounts
from reconciler.placement.optimize_filling import filling
from reconciler.placement.optimize_kinds import Movable, most_of_each
from reconciler.placement.optimize_sizes import Sizes

Floats = NDArray[np.float64]
_GAIN = 1e-7
"""USD an hour: what a pattern must save to be worth a column; less is rounding."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """kinds: pairs of a kind's number and how many chunks of it, by number; size: of the node, -1 for one of the fast
    placement's; price: USD an hour."""

    kinds: tuple[tuple[int, int], ...]
    size: int
    price: float


class Filler:
    """Fills nodes of every size with what is worth most."""

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
        # sizes × opinions × kinds: how much of a node one chunk takes.
        self._burden: Floats = np.einsum("ow,skw->sok", self._opinions, movable.asked[None, :, used] / room[:, None, :])

    def best(self, worth: Floats, left: Amounts) -> list[Pattern]:
        """One for each size, where there is one that is worth more than its price. worth: USD an hour for a chunk of each
        kind; left: how many of each there are."""
        chosen = np.flatnonzero((worth > 0) & (left > 0))
        sizes = np.flatnonzero(self._sizes.takes[:, chosen].any(axis=1))
        if not len(sizes) or not len(chosen):
            return []
        filled = self._filled(worth, left, chosen, sizes)
        value = filled @ worth[chosen]
        value = value.reshape(len(sizes), len(self._opinions))
        opinion = value.argmax(axis=1)
        prices = self._sizes.prices[sizes] / 1e9
        gain = value[np.arange(len(sizes)), opinion] - prices
        found = []
        for place in np.flatnonzero(np.asarray(gain > _GAIN)).tolist():
            counts = filled[place * len(self._opinions) + int(opinion[place])]
            there = np.flatnonzero(counts)
            pairs = tuple(zip(chosen[there].tolist(), counts[there].tolist(), strict=True))
            found.append(Pattern(pairs, int(sizes[place]), float(prices[place])))
        return found

    def _filled(self, worth: Floats, left: Amounts, chosen: Amounts, sizes: Amounts) -> Amounts:
        """(sizes × opinions) × chosen kinds."""
        opinions = len(self._opinions)
        takes = np.repeat(self._sizes.takes[np.ix_(sizes, chosen)], opinions, axis=0)
        burden = self._burden[sizes][:, :, chosen].reshape(len(takes), len(chosen))
        score = np.where(takes, worth[chosen] / np.maximum(burden, 1e-12), -1.0)
        order = np.argsort(-score, axis=1, kind="stable")
        most = np.minimum(self._most[chosen], left[chosen])
        room = np.repeat(self._rooms[sizes], opinions, axis=0)
        return filling()(order, takes, self._asked[chosen], room, most, self._movable.apart[np.ix_(chosen, chosen)])


def _opinions(resources: int) -> Iterable[Floats]:
    """Weights of the resources: each alone, all alike, and pairs of them in several proportions."""
    yield np.full(resources, 1 / resources)
    for number in range(resources):
        yield np.eye(resources)[number]
    for one, other in list(combinations(range(resources), 2))[:3]:
        for share in (0.5, 0.75, 0.25):
            yield share * np.eye(resources)[one] + (1 - share) * np.eye(resources)[other]
