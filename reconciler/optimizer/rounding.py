"""From the fractions of nodes that the linear master deals in to whole nodes.

Nodes that the master has nearly whole are taken, the rest is solved again, and so on until every chunk has a node. No fraction
is the best one for all inputs, so a few are tried and the cheapest outcome counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.master import MasterSolution
from reconciler.placement.amounts import Amounts

THRESHOLDS = (0.7, 0.8)
"""Fractions of a node from which it is taken whole; one attempt each."""
FURTHER_THRESHOLDS = (0.95, 0.6, 0.5, 1.0, 0.65)
"""For few item types, of which an attempt takes next to no work."""
_ROUNDS = 3
"""Of column generation after each taking."""


def rounded(
    columns: ColumnGeneration, solution: MasterSolution, counts: Amounts, *, threshold: float
) -> list[Pattern] | None:
    """A pattern for each node; together they hold each chunk once. None when the budget was over before.

    solution: the master's for all chunks. counts: chunks by item type. threshold: the fraction of a node from which it is taken.
    """
    patterns, left = columns.master.patterns, counts.copy()
    chosen: list[Pattern] = []
    while True:
        taken = len(chosen)
        whole = np.floor(solution.amounts + 1 - threshold).astype(np.int64)
        for number in np.flatnonzero(whole).tolist():
            _take(patterns[number], int(whole[number]), left, chosen)
        if len(chosen) == taken:
            most = np.argsort(-solution.amounts, kind="stable").tolist()
            full = (number for number in most if all(count <= left[item] for item, count in patterns[number].items))
            _take(patterns[next(full, most[0])], 1, left, chosen)
        if not left.any():
            return chosen
        columns.master.require(left)
        again = columns.solve(left, rounds=_ROUNDS)
        if again is None or columns.budget.exhausted:
            return None
        solution = again


def _take(pattern: Pattern, nodes: int, left: Amounts, chosen: list[Pattern]) -> None:
    """Never more of an item type than is left: the last of several equal nodes then holds fewer chunks."""
    for _ in range(nodes):
        counts = [(item, min(count, int(left[item]))) for item, count in pattern.items]
        held = tuple((item, count) for item, count in counts if count)
        if held:
            chosen.append(replace(pattern, items=held))
        for item, count in held:
            left[item] -= count
