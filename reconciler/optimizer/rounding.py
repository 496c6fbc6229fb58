"""From the fractions of nodes that the linear master deals in to whole nodes.

Nodes that the master has nearly whole are taken, the rest is solved again, and so on until every chunk has a node. No fraction
is the best one for all inputs, so a few are tried and the cheapest outcome counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.master import MasterSolution
from reconciler.optimizer.solver import Floats
from reconciler.placement.amounts import Amounts

_LEAST_TAKEN = 0.05
"""Part of all nodes that is taken at a time, since of many chunks that are all different few nodes are nearly whole."""
_LEAST_PRICE = 1e-9
"""USD an hour that stands for none, where it is divided by."""


THRESHOLDS = (None, 0.7, 0.8)
"""Fractions of a node from which it is taken whole, see `rounded`; one attempt each."""
FURTHER_THRESHOLDS = (0.95, 0.6, 0.5, 1.0, 0.65)
"""For few item types, of which an attempt takes next to no work."""
_ROUNDS = 3
"""Of column generation after each taking."""


def rounded(
    columns: ColumnGeneration, solution: MasterSolution, counts: Amounts, *, threshold: float | None
) -> list[Pattern]:
    """A pattern for each node; together they hold each chunk once.

    solution: the master's for all chunks. counts: chunks by item type. threshold: the fraction of a node from which it is taken.
    None: take whole ones and solve nothing again, which is best where few nodes are left over.
    """
    patterns = columns.master.patterns
    left = counts.copy()
    chosen: list[Pattern] = []
    while left.any() and not columns.budget.exhausted:
        taken = _taken(patterns, solution, left, threshold or 1.0)
        chosen += taken
        for pattern in taken:
            _subtract(left, pattern)
        if threshold is None:
            break
        if left.any():
            columns.master.require(left)
            again = columns.solve(left, rounds=_ROUNDS)
            if again is None:
                break
            solution = again
    return [*chosen, *_greedy(patterns, solution.dual_prices, left)]


def _taken(patterns: Sequence[Pattern], solution: MasterSolution, left: Amounts, threshold: float) -> list[Pattern]:
    """Nodes that are whole up to the threshold; where those are few, also the most nearly whole ones that are full.

    Never more of an item type than is left: the last of several equal patterns then holds fewer chunks.
    """
    amounts = np.floor(solution.amounts + 1 - threshold).astype(np.int64)
    remaining = left.copy()
    taken: list[Pattern] = []

    def take(pattern: Pattern) -> None:
        _subtract(remaining, pattern)
        taken.append(pattern)

    for number in np.flatnonzero(amounts).tolist():
        for _ in range(int(amounts[number])):
            trimmed = _trimmed(patterns[number], remaining)
            if trimmed is None:
                break
            take(trimmed)
    enough = max(1, int(_LEAST_TAKEN * solution.amounts.sum()))
    for number in np.argsort(-solution.amounts, kind="stable").tolist() if len(taken) < enough else ():
        if len(taken) >= enough or (taken and not solution.amounts[number]):
            break
        if not amounts[number] and _trimmed(patterns[number], remaining) == patterns[number]:
            take(patterns[number])
    if not taken:
        most = _trimmed(patterns[int(solution.amounts.argmax())], remaining)
        assert most is not None
        take(most)
    return taken


def _subtract(remaining: Amounts, pattern: Pattern) -> None:
    for item, count in pattern.items:
        remaining[item] -= count


def _trimmed(pattern: Pattern, remaining: Amounts) -> Pattern | None:
    """With no more of an item type than remains; None when nothing of it does."""
    counts = [(item, min(count, int(remaining[item]))) for item, count in pattern.items]
    held = tuple((item, count) for item, count in counts if count)
    return replace(pattern, items=held) if held else None


def _greedy(patterns: Sequence[Pattern], dual_prices: Floats, left: Amounts) -> list[Pattern]:
    """Again and again the known pattern that holds most worth for its price. Every chunk is in one, since the nodes of the fast
    placement are patterns."""
    lengths = np.array([len(pattern.items) for pattern in patterns], dtype=np.int64)
    owners = np.repeat(np.arange(len(patterns)), lengths)
    items = np.array([item for pattern in patterns for item, _ in pattern.items], dtype=np.int64)
    counts = np.array([count for pattern in patterns for _, count in pattern.items], dtype=np.int64)
    prices = np.array([max(pattern.price, _LEAST_PRICE) for pattern in patterns])
    worth = np.maximum(dual_prices, _LEAST_PRICE)[items]
    remaining = left.copy()
    chosen: list[Pattern] = []
    while remaining.any():
        held = np.minimum(counts, remaining[items]) * worth
        best = int((np.bincount(owners, weights=held, minlength=len(patterns)) / prices).argmax())
        whole = min((int(remaining[item]) // count for item, count in patterns[best].items), default=0)
        for _ in range(max(1, whole)):
            trimmed = _trimmed(patterns[best], remaining)
            assert trimmed is not None
            _subtract(remaining, trimmed)
            chosen.append(trimmed)
    return chosen
