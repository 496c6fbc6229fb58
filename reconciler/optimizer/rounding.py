"""From parts of nodes, which linear programs deal in, to whole ones. Used by packings.

Whole nodes are taken out of the mix, the rest is solved again, and so on until every chunk has a node. Which are taken first
decides what becomes of the rest, and no way is the best for all inputs: so some ways are tried and the cheapest counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.effort import Effort
from reconciler.optimizer.kinds import Pattern
from reconciler.optimizer.master import Master, Solved
from reconciler.optimizer.patterns import Filler, Floats
from reconciler.placement.amounts import Amounts

_PROGRESS = 1e-5
"""Part of the price that some rounds together must save for more of them to be made."""
_PATIENCE = 20
_STEADY = 0.3
"""Part of what chunks were worth before that stays when the master says something else."""
_AT_LEAST = 0.05
"""Part of all nodes that are taken at a time: of many chunks that are each the only one of their kind few nodes are nearly whole."""
_MEANS = (2, 4, 8)
"""Of how many last worths of chunks the mean is looked at where the last ones lead to no new pattern."""
_LEAST_WORTH = 1e-9


@dataclass(frozen=True, slots=True)
class Way:
    """sure: part of a node from which it is taken whole without a look at the others; rounds: of new patterns, each time that
    some were taken."""

    sure: float
    rounds: int


WAYS = (Way(0.6, 3), Way(0.7, 3), Way(0.8, 3))
MORE_WAYS = (Way(0.95, 6), Way(0.5, 6), Way(1.0, 10), Way(0.85, 10), Way(0.65, 10))
"""Where there are few kinds of chunks, so that a way costs next to nothing."""


class Mixer:
    """One linear program and what fills nodes for it. counts: of each kind of chunks, all of them."""

    def __init__(self, master: Master, filler: Filler, counts: Amounts, effort: Effort) -> None:
        self._master = master
        self._filler = filler
        self._counts = counts
        self._effort = effort

    def mixed(self, left: Amounts, *, rounds: int, start: Floats | None = None) -> Solved | None:
        """Patterns that are worth more than their nodes cost are added, until none is found or the rounds or the work are over;
        returns what the last mix came to. None when the solver came to no end at all. start: what chunks may be worth, from
        which the search goes on step by step: worths that jump about lead to patterns that no mix keeps."""
        known: Solved | None = None
        prices: list[float] = []
        worths: list[Floats] = []
        smoothed = start
        while True:
            solved = self._master.solve(self._effort)
            if solved is None:
                return known
            known = solved
            prices.append(solved.price)
            stuck = len(prices) > _PATIENCE and prices[-_PATIENCE - 1] - prices[-1] < _PROGRESS * prices[-1]
            if len(prices) > rounds or stuck or self._effort.over:
                return known
            worths.append(solved.worth)
            views = [solved.worth]
            if smoothed is not None:
                smoothed = _STEADY * smoothed + (1 - _STEADY) * solved.worth
                views = [smoothed, solved.worth, *(_mean(worths[-count:]) for count in _MEANS)]
            if not any(self._master.add(self._filler.best(view, left, self._effort)) for view in views):
                return known

    def rounded(self, solved: Solved, way: Way | None) -> list[Pattern]:
        """A pattern for each node; together they hold each chunk once. solved: the mix of all; way: None for the shortest, which
        solves nothing again."""
        patterns = self._master.patterns
        left = self._counts.copy()
        chosen: list[Pattern] = []
        while left.any():
            taken = _taken(patterns, solved, left, way.sure if way else 1.0)
            chosen += taken
            left = _less(left, taken)
            if way is None or self._effort.over:
                return [*chosen, *_greedy(patterns, solved.worth, left)]
            if left.any():
                self._master.ask_for(left)
                again = self.mixed(left, rounds=way.rounds)
                if again is None:
                    return [*chosen, *_greedy(patterns, solved.worth, left)]
                solved = again
        return chosen


def _mean(worths: Sequence[Floats]) -> Floats:
    return np.asarray(sum(worths) / len(worths), dtype=np.float64)


def _less(left: Amounts, taken: Sequence[Pattern]) -> Amounts:
    remaining = left.copy()
    for pattern in taken:
        for kind, count in pattern.kinds:
            remaining[kind] -= count
    return remaining


def _taken(patterns: Sequence[Pattern], solved: Solved, left: Amounts, sure: float) -> list[Pattern]:
    """Nodes that the master has whole, or nearly so; where those are few, the most nearly whole ones of which every chunk is
    left. Never more of a kind than is left: the last of several patterns holds less then."""
    amounts = np.floor(solved.amounts + 1 - sure).astype(np.int64)
    remaining = left.copy()
    taken: list[Pattern] = []

    def take(pattern: Pattern) -> None:
        for kind, count in pattern.kinds:
            remaining[kind] -= count
        taken.append(pattern)

    for number in np.flatnonzero(amounts).tolist():
        for _ in range(int(amounts[number])):
            cut = _cut(patterns[number], remaining)
            if cut is None:
                break
            take(cut)
    enough = max(1, int(_AT_LEAST * solved.amounts.sum()))
    for number in np.argsort(-solved.amounts, kind="stable").tolist() if len(taken) < enough else ():
        if len(taken) >= enough or (taken and not solved.amounts[number]):
            break
        if not amounts[number] and _cut(patterns[number], remaining) == patterns[number]:
            take(patterns[number])
    if not taken:
        most = _cut(patterns[int(solved.amounts.argmax())], remaining)
        assert most is not None
        take(most)
    return taken


def _cut(pattern: Pattern, remaining: Amounts) -> Pattern | None:
    """With no more of a kind than there is; None when nothing of it is left."""
    kinds = [(kind, min(count, int(remaining[kind]))) for kind, count in pattern.kinds]
    held = tuple((kind, count) for kind, count in kinds if count)
    return Pattern(held, pattern.size, pattern.price) if held else None


def _greedy(patterns: Sequence[Pattern], worth: Floats, left: Amounts) -> list[Pattern]:
    """For what is left, again and again the known pattern that holds most worth for its price. Every chunk is in one: the fast
    placement's nodes are patterns."""
    sizes = np.array([len(pattern.kinds) for pattern in patterns], dtype=np.int64)
    owners = np.repeat(np.arange(len(patterns)), sizes)
    kinds = np.array([kind for pattern in patterns for kind, _ in pattern.kinds], dtype=np.int64)
    counts = np.array([count for pattern in patterns for _, count in pattern.kinds], dtype=np.int64)
    prices = np.array([max(pattern.price, _LEAST_WORTH) for pattern in patterns])
    worths = np.maximum(worth, _LEAST_WORTH)[kinds]
    remaining = left.copy()
    chosen: list[Pattern] = []
    while remaining.any():
        held = np.minimum(counts, remaining[kinds]) * worths
        best = int((np.bincount(owners, weights=held, minlength=len(patterns)) / prices).argmax())
        whole = min((int(remaining[kind]) // count for kind, count in patterns[best].kinds), default=0)
        for _ in range(max(1, whole)):
            cut = _cut(patterns[best], remaining)
            assert cut is not None
            for kind, count in cut.kinds:
                remaining[kind] -= count
            chosen.append(cut)
    return chosen
