"""From fractions of nodes to whole ones."""

from __future__ import annotations

import math

import numpy as np

from reconciler.optimizer.columns import ColumnGeneration, MasterProblem, Rows
from reconciler.optimizer.packing import BinTypes, NodeRules, Packing, Pattern
from reconciler.optimizer.place_in_mode import improved, rounded
from reconciler.optimizer.pricing import MasterSolution
from reconciler.optimizer.solver import WorkBudget

LARGE, SMALL = 5.0, 1.0
"""USD an hour of a node for ten chunks, and of one for a single chunk."""


def packing(chunks: int) -> Packing:
    """Equal chunks of one CPU, and two bin types."""
    bin_types = BinTypes(
        capacity=np.array([[10], [1]]),
        prices=np.array([int(LARGE * 1e9), int(SMALL * 1e9)]),
        admits=np.ones((2, 1), dtype=np.bool_),
        pools=np.zeros(2, dtype=np.int64),
    )
    rules = NodeRules(np.array([[1]]), np.zeros(0, dtype=np.int64), np.zeros((1, 1), dtype=np.bool_))
    return Packing(np.array([chunks]), bin_types, rules)


def solved(chunks: int, *known: Pattern) -> tuple[ColumnGeneration, MasterSolution]:
    problem = packing(chunks)
    master = MasterProblem(Rows.of_counts(problem.counts, problem.pools), known)
    columns = ColumnGeneration(master, problem, WorkBudget(lambda: math.inf))
    solution = columns.solve(problem.counts, rounds=10)
    assert solution is not None
    return columns, solution


def nodes(patterns: list[Pattern] | None) -> list[tuple[float, int]]:
    """Price and chunks of each."""
    assert patterns is not None
    return [(pattern.price, sum(count for _, count in pattern.items)) for pattern in patterns]


def test_what_is_left_for_a_node_gets_the_cheapest_that_holds_it() -> None:
    """By the linear program the eleventh chunk costs a tenth of a large node, so that a small one saves nothing."""
    columns, solution = solved(11, Pattern(((0, 10),), LARGE, 0))

    assert nodes(rounded(columns, solution, np.array([11]))) == [(LARGE, 10), (SMALL, 1)]


def test_nodes_that_cost_more_than_they_need_are_packed_anew() -> None:
    columns, solution = solved(11, Pattern(((0, 10),), LARGE, 0))
    dear = [Pattern(((0, 6),), LARGE, 0), Pattern(((0, 5),), LARGE, 0)]

    assert sorted(nodes(improved(columns, solution, dear))) == [(SMALL, 1), (LARGE, 10)]
