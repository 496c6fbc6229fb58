"""A lower bound on the price, by a linear program in which nodes and chunks may be split.

Patterns found greedily bound nothing, so this is another program than the master problem. Of a few nodes a fraction of one is
all that splitting saves, so small programs are solved with whole nodes too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.optimizer.relaxation import Relaxation, RelaxedBin
from reconciler.optimizer.solver import UNBOUNDED, LinearProgram
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts
from reconciler.placement.engine.arrays import MINIMUM, RUNNING

_FEW_VARIABLES = 1500
_FEW_NODES = 20
"""Up to which the program is solved with whole nodes too."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum.

    Resources count in sum. Kept besides are how many of an item type fit on a node, and item types that all conflict with each
    other. NodePools keep to their number of nodes.
    """
    program = LinearProgram()
    formulation = _Formulation(relaxation, program)
    for item in relaxation.bins:
        formulation.add_bin(item)
    formulation.add_totals()
    solved = program.solve(budget)
    if solved is None:
        return None
    price, amounts = solved
    if program.variables <= _FEW_VARIABLES and amounts[formulation.new_nodes].sum() <= _FEW_NODES:
        price = max(price, program.integer_bound(budget))
    return price


class _Formulation:
    """Writes the program down, bin by bin. classes: item types that no row tells apart, as one; new_nodes: variables."""

    def __init__(self, relaxation: Relaxation, program: LinearProgram) -> None:
        self._relaxation = relaxation
        self._program = program
        self.classes = _classes(relaxation)
        self.new_nodes: list[int] = []
        self._firsts = np.array([members[0] for members in self.classes], dtype=np.int64)
        self._cliques = _cliques(relaxation)
        self._placed: list[list[tuple[int, float]]] = [[] for _ in self.classes]
        self._by_pool: dict[int, list[tuple[int, float]]] = {}
        parts = [relaxation.batches[first].part for first in self._firsts.tolist()]
        self._in_room = [part != MINIMUM for part in parts]
        self._in_lean = [part != RUNNING for part in parts]
        self._has_minimum = MINIMUM in parts

    def add_bin(self, item: RelaxedBin) -> None:
        most = UNBOUNDED if item.is_new else 1.0
        node = self._program.add_variable(item.price / 1e9, most=most, integer=item.is_new)
        here = [
            (position, self._add_chunks(item, node, position, int(fits)))
            for position, fits in enumerate(item.fits[self._firsts].tolist())
            if fits
        ]
        self._add_resources(here, item.room, node, self._in_room)
        if self._has_minimum:
            self._add_resources(here, item.lean, node, self._in_lean)
        if not item.is_new:
            return
        self.new_nodes.append(node)
        self._by_pool.setdefault(item.pool, []).append((node, 1.0))
        for clique in self._cliques:
            terms = [(variable, 1.0) for position, variable in here if int(self._firsts[position]) in clique]
            if len(terms) > 1:
                self._program.add_row(-UNBOUNDED, 0.0, [*terms, (node, -1.0)])

    def _add_chunks(self, item: RelaxedBin, node: int, position: int, most: int) -> int:
        """A variable for how many chunks of a class are there. most: as many as one such bin has room for."""
        number = int(self._firsts[position])
        if item.is_new and self._relaxation.conflicts[number, number]:
            most = 1
        variable = self._program.add_variable(0.0)
        self._placed[position].append((variable, 1.0))
        self._program.add_row(-UNBOUNDED, 0.0, [(variable, 1.0), (node, -float(most))])
        return variable

    def _add_resources(self, here: list[tuple[int, int]], room: Amounts, node: int, counts: Sequence[bool]) -> None:
        for resource in range(len(room)):
            terms = [
                (variable, float(self._relaxation.requests[self._firsts[position], resource] / max(room[resource], 1)))
                for position, variable in here
                if counts[position]
            ]
            if any(share for _, share in terms):
                self._program.add_row(-UNBOUNDED, 0.0, [*terms, (node, -1.0)])

    def add_totals(self) -> None:
        """The rows over all bins."""
        for pool, most in sorted(self._relaxation.most_nodes.items()):
            self._program.add_row(-UNBOUNDED, float(most), self._by_pool.get(pool, []))
        for members, placed in zip(self.classes, self._placed, strict=True):
            self._program.add_row(float(self._relaxation.counts[members].sum()), UNBOUNDED, placed)


def _classes(relaxation: Relaxation) -> list[list[int]]:
    """Item types that no row of the program tells apart."""
    fits = np.array([item.fits for item in relaxation.bins], dtype=np.int64)
    fits = fits.reshape(len(relaxation.bins), len(relaxation.batches))
    found: dict[tuple[object, ...], list[int]] = {}
    for number, batch in enumerate(relaxation.batches):
        rows = (relaxation.requests[number], fits[:, number], relaxation.conflicts[number])
        found.setdefault((*(row.tobytes() for row in rows), batch.part), []).append(number)
    return list(found.values())


def _cliques(relaxation: Relaxation) -> list[frozenset[int]]:
    """Item types of which one node takes one chunk in all."""
    groups: dict[bytes, list[int]] = {}
    conflicts = relaxation.conflicts
    for number in np.flatnonzero(conflicts.diagonal()).tolist():
        groups.setdefault(conflicts[number].tobytes(), []).append(number)
    return [frozenset(members) for members in groups.values() if bool(conflicts[np.ix_(members, members)].all())]
