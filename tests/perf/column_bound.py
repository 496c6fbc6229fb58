"""A stronger bound than that of `lower_bound`: nodes may be split, but what each of them holds is whole pods.

Column generation with exact pricing (Gilmore and Gomory, 1961). A linear master program mixes patterns, ways to fill one node. An
integer program for each kind of node finds the pattern that is worth most at the master's dual prices. Where that is at most r
times what its node costs, the dual prices divided by r pay for no node too much, so that all pods together at these prices are a
bound (Farley, 1990). At the optimum r is one. What is left out is as for `lower_bound`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from reconciler.model.pods import PodShape
from tests.perf.lower_bound import NodeKind, PodClass, class_of

Floats = NDArray[np.float64]
CLOSE_ENOUGH = 0.0005
"""Part of the price by which bound and master may still differ."""
MOST_ROUNDS = 100
MOST_BRANCHES = 2000
_INFINITY = highspy.kHighsInf


def column_bound(shapes: Iterable[PodShape], kinds: Sequence[NodeKind]) -> float:
    """USD an hour that no placement of these pods on new nodes can go below."""
    counts = Counter(class_of(shape) for shape in shapes)
    classes, wanted = list(counts), np.array(list(counts.values()), dtype=np.float64)
    knapsacks = [_Knapsack(classes, wanted, kind) for kind in _undominated(kinds)]
    master = _Master(wanted)
    for number in range(len(classes)):
        alone = np.eye(len(classes))[number]
        master.add(alone, min(knapsack.price for knapsack in knapsacks if knapsack.most[number]))
    best = 0.0
    for _ in range(MOST_ROUNDS):
        price, duals = master.solve()
        ratio, patterns = _priced(knapsacks, duals)
        best = max(best, float(wanted @ duals) / ratio)
        if not patterns or price <= best * (1 + CLOSE_ENOUGH):
            break
        for pattern, cost in patterns:
            master.add(pattern, cost)
    return best


def _undominated(kinds: Sequence[NodeKind]) -> Sequence[NodeKind]:
    """kinds: the cheapest first, as `node_kinds` has them."""
    kept: list[NodeKind] = []
    for kind in kinds:
        if not any(all(other.room.get(name) >= amount for name, amount in kind.room) for other in kept):
            kept.append(kind)
    return kept


def _priced(knapsacks: Sequence[_Knapsack], duals: Floats) -> tuple[float, list[tuple[Floats, float]]]:
    """How many times its price the most that any node holds is worth, at least once; and patterns that are worth more than their
    node. Kinds of which even a split pattern is worth less than the best so far are left out."""
    ratio = 1.0
    patterns = []
    split = sorted(
        ((knapsack.split_worth(duals) / knapsack.price, n) for n, knapsack in enumerate(knapsacks)), reverse=True
    )
    for most, number in split:
        if most <= ratio:
            break
        knapsack = knapsacks[number]
        worth, pattern = knapsack.whole_worth(duals)
        ratio = max(ratio, worth / knapsack.price)
        if float(pattern @ duals) > knapsack.price * (1 + 1e-7):
            patterns.append((pattern, knapsack.price))
    return ratio, patterns


class _Master:
    """How many nodes of each pattern, fractions allowed, hold all pods at the least price."""

    def __init__(self, wanted: Floats) -> None:
        self._solver = _solver()
        for count in wanted.tolist():
            self._solver.addRow(count, _INFINITY, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def add(self, pattern: Floats, price: float) -> None:
        held = np.flatnonzero(pattern).astype(np.int32)
        self._solver.addCol(price, 0.0, _INFINITY, len(held), held, pattern[held])

    def solve(self) -> tuple[float, Floats]:
        """The price in USD an hour, and what one more pod of each class costs."""
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual, dtype=np.float64)
        return float(self._solver.getInfo().objective_function_value), np.maximum(duals, 0.0)


class _Knapsack:
    """Which pods one node holds. most: of each class, by itself."""

    def __init__(self, classes: Sequence[PodClass], wanted: Floats, kind: NodeKind) -> None:
        self.price = kind.price
        self.most = [min(_fits(item, kind), int(count)) for item, count in zip(classes, wanted, strict=True)]
        self._solver = _solver()
        for most in self.most:
            self._solver.addVar(0.0, float(most))
        for name, room in kind.room:
            self._add_row({n: item.requests.get(name) / room for n, item in enumerate(classes)})
        for clique in {item.clique for item in classes if item.clique is not None}:
            self._add_row({n: float(item.clique == clique) for n, item in enumerate(classes)})
        self._every = np.arange(len(classes), dtype=np.int32)

    def _add_row(self, shares: dict[int, float]) -> None:
        numbers = np.array([number for number, share in shares.items() if share], dtype=np.int32)
        values = np.array([share for share in shares.values() if share], dtype=np.float64)
        self._solver.addRow(-_INFINITY, 1.0, len(numbers), numbers, values)

    def split_worth(self, duals: Floats) -> float:
        """The most that pods on the node are worth when they may be split."""
        self._run(duals, highspy.HighsVarType.kContinuous)
        return -float(self._solver.getInfo().objective_function_value)

    def whole_worth(self, duals: Floats) -> tuple[float, Floats]:
        """A bound on what whole pods on the node are worth, and the best pattern that was found."""
        self._run(duals, highspy.HighsVarType.kInteger)
        pattern = np.rint(np.array(self._solver.getSolution().col_value, dtype=np.float64))
        return -float(self._solver.getInfo().mip_dual_bound), pattern

    def _run(self, duals: Floats, variables: highspy.HighsVarType) -> None:
        self._solver.changeColsIntegrality(len(duals), self._every, np.full(len(duals), variables))
        self._solver.changeColsCost(len(duals), self._every, -duals)
        self._solver.run()


def _fits(item: PodClass, kind: NodeKind) -> int:
    alone = min(kind.room.get(name) // amount for name, amount in item.requests if amount)
    return min(alone, 1) if item.clique is not None else alone


def _solver() -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_max_nodes", MOST_BRANCHES)
    return solver
