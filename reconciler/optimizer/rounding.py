"""From the fractions of nodes that the linear master deals in to whole nodes.

Nodes that the master has nearly whole are taken, the rest is solved again, and so on until every chunk has a node. The last nodes to be
taken fit badly. So a few nodes at a time are packed anew, those with much waste among others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.columns import ColumnGeneration
from reconciler.optimizer.master import MasterSolution, held_by
from reconciler.optimizer.packing import Packing
from reconciler.placement.amounts import Amounts

_NEARLY_WHOLE = 0.7
"""Fraction of a node from which it is taken whole."""
_ROUNDS = 3
"""Of column generation after each taking."""
_FEW = 10
"""Nodes that are packed anew together: of more, fewer attempts find something, and each takes longer."""
_ATTEMPTS = 20


def cost(patterns: Sequence[Pattern]) -> tuple[int, int]:
    """In billionths of a USD an hour; of equals, fewer nodes are better."""
    return round(sum(pattern.price for pattern in patterns) * 1e9), len(patterns)


def rounded(columns: ColumnGeneration, solution: MasterSolution, counts: Amounts) -> list[Pattern] | None:
    """A pattern for each node; together they hold each chunk once. None when the budget was over before.

    solution: the master's for all chunks. counts: chunks by item type.
    """
    patterns, left = columns.master.patterns, counts.copy()
    chosen: list[Pattern] = []
    while True:
        taken = len(chosen)
        whole = np.floor(solution.amounts + 1 - _NEARLY_WHOLE).astype(np.int64)
        for number in np.flatnonzero(whole).tolist():
            chosen += _taken(columns.packing, patterns[number], int(whole[number]), left)
        if len(chosen) == taken:
            most = np.argsort(-solution.amounts, kind="stable").tolist()
            full = (number for number in most if all(count <= left[item] for item, count in patterns[number].items))
            chosen += _taken(columns.packing, patterns[next(full, most[0])], 1, left)
        if not left.any():
            return chosen
        columns.master.require(left)
        again = columns.solve(left, rounds=_ROUNDS)
        if again is None or columns.budget.exhausted:
            return None
        solution = again


def improved(columns: ColumnGeneration, solution: MasterSolution, nodes: Sequence[Pattern]) -> list[Pattern]:
    """The same chunks on cheaper nodes, where some are found within the budget. solution: the master's for all chunks."""
    known, prices = columns.master.patterns, solution.dual_prices
    held = held_by(known, len(prices))
    best = list(nodes)
    for attempt in range(_ATTEMPTS):
        amounts = held_by(best, len(prices))
        waste = np.array([pattern.price for pattern in best]) - amounts @ prices
        numbers = np.argsort(-waste, kind="stable")[_chosen(len(best), attempt)].tolist()
        few, counts = [best[number] for number in numbers], amounts[numbers].sum(axis=0)
        fitting = np.flatnonzero((held <= counts).all(axis=1)).tolist()
        part = columns.only([*few, *[known[number] for number in fitting]], counts)
        again = part.solve(counts, rounds=2 * _ROUNDS)
        if again is None or part.budget.exhausted:
            break
        found = rounded(part, again, counts) if round(again.price * 1e9) < cost(few)[0] else None
        if found is not None and cost(found) < cost(few):
            best = [pattern for number, pattern in enumerate(best) if number not in set(numbers)] + found
    return best


def _chosen(nodes: int, attempt: int) -> list[int]:
    """Every other time evenly from all, and else those with most waste, and as many others."""
    if attempt % 2:
        step = max(1, nodes // _FEW)
        return list(range(attempt // 2 % step, nodes, step))
    half = _FEW // 2
    start = half + attempt // 2 * half % max(1, nodes - _FEW)
    return [*range(min(half, nodes)), *range(start, min(start + half, nodes))]


def _taken(packing: Packing, pattern: Pattern, nodes: int, left: Amounts) -> list[Pattern]:
    """Never more of an item type than is left: the last of several equal nodes then holds fewer chunks, and may be smaller."""
    found = []
    for _ in range(nodes):
        counts = [(item, min(count, int(left[item]))) for item, count in pattern.items]
        held = tuple((item, count) for item, count in counts if count)
        if held:
            found.append(pattern if held == pattern.items else packing.cheapest(held))
        for item, count in held:
            left[item] -= count
    return found
