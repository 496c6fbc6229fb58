"""A lower bound on the price, by a linear program in which nodes and chunks may be split.

Patterns found greedily bound nothing, so this is another program than the master problem. Of a few nodes a fraction of one is
all that splitting saves, so small programs are solved with whole nodes too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.item_types import PackingProblem
from reconciler.optimizer.relaxation import Relaxation
from reconciler.optimizer.relaxed_bins import RelaxedBin
from reconciler.optimizer.solver import UNBOUNDED, Floats, LinearProgram, load_solver, run
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.engine.arrays import MINIMUM, RUNNING

_IMPLIED = 1.003
"""A row on how many of an item type fit is left out where the rows on resources allow less than so many times as many."""
_FEW_VARIABLES = 1500
_FEW_NODES = 20
"""Up to which the program is solved with whole nodes too."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """price: USD an hour that no valid placement goes below; dual_prices: USD an hour of one more chunk, by number of batch."""

    price: float
    dual_prices: Mapping[int, float]

    def dual_prices_of(self, problem: PackingProblem) -> Floats:
        """By item type."""
        found = [self.dual_prices.get(item.batch.number, 0.0) for item in problem.item_types]
        return np.array(found, dtype=np.float64)


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> LowerBound | None:
    """None when the solver found no optimum.

    Resources count in sum. Kept besides are how many of an item type fit on a node, item types that all conflict with each
    other, affinity groups in one domain, and how many nodes a NodePool may have.
    """
    highs, solver = load_solver()
    program = LinearProgram(highs)
    formulation = _Formulation(relaxation, program)
    for item in relaxation.bins:
        formulation.add_bin(item)
    formulation.add_totals()
    solver.setOptionValue("presolve", "on")
    program.pass_to(solver)
    if not run(highs, solver, budget):
        return None
    price = float(solver.getInfo().objective_function_value)
    solution = solver.getSolution()
    by_class = solution.row_dual[-len(formulation.classes) :]
    dual_prices: dict[int, float] = {}
    for value, members in zip(by_class, formulation.classes, strict=True):
        dual_prices |= dict.fromkeys(members, max(0.0, value))
    nodes = sum(solution.col_value[variable] for variable in formulation.new_nodes)
    if program.variables <= _FEW_VARIABLES and nodes <= _FEW_NODES:
        price = max(price, program.integer_bound(solver, budget))
    return LowerBound(price, {batch: dual_prices[number] for batch, number in relaxation.number_of.items()})


class _Formulation:
    """Writes the program down, bin by bin. classes: item types that no row tells apart, as one; new_nodes: variables."""

    def __init__(self, relaxation: Relaxation, program: LinearProgram) -> None:
        self._relaxation = relaxation
        self._program = program
        self.classes = _classes(relaxation)
        self.new_nodes: list[int] = []
        self._firsts = np.array([members[0] for members in self.classes], dtype=np.int64)
        self._counts = [sum(relaxation.item_types[number].count for number in members) for members in self.classes]
        self._cliques = _cliques(relaxation)
        self._placed: list[list[tuple[int, float]]] = [[] for _ in self.classes]
        self._by_pool: dict[int, list[tuple[int, float]]] = {}
        self._domains = [self._domain_variables(number) for number in range(len(relaxation.affinity_groups))]
        parts = [relaxation.item_types[first].batch.part for first in self._firsts.tolist()]
        self._in_room = [part != MINIMUM for part in parts]
        self._in_lean = [part != RUNNING for part in parts]
        self._has_minimum = MINIMUM in parts

    def _domain_variables(self, number: int) -> dict[str, int]:
        """By domain, whether the affinity group is there."""
        key = self._relaxation.affinity_groups[number].key
        values = {value for item in self._relaxation.bins for value in item.domains.get(key, ())}
        found = {value: self._program.add_variable(0.0, most=1.0, integer=True) for value in sorted(values)}
        if found:
            self._program.add_row(-UNBOUNDED, 1.0, [(variable, 1.0) for variable in found.values()])
        return found

    def add_bin(self, item: RelaxedBin) -> None:
        most = float(item.most) if item.most < PLENTY else UNBOUNDED
        node = self._program.add_variable(item.price / 1e9, most=most, integer=item.single)
        if item.pool >= 0:
            self.new_nodes.append(node)
        here = [
            (position, self._add_chunks(item, node, position, int(fits)))
            for position, fits in enumerate(item.fits[self._firsts].tolist())
            if fits
        ]
        self._add_resources(here, item.room, node, self._in_room)
        if self._has_minimum:
            self._add_resources(here, item.lean, node, self._in_lean)
        for clique in self._cliques if item.single else ():
            terms = [(variable, 1.0) for position, variable in here if int(self._firsts[position]) in clique]
            if len(terms) > 1:
                self._program.add_row(-UNBOUNDED, 0.0, [*terms, (node, -1.0)])
        if item.pool in self._relaxation.most_nodes:
            self._by_pool.setdefault(item.pool, []).append((node, 1.0))

    def _add_chunks(self, item: RelaxedBin, node: int, position: int, most: int) -> int:
        """A variable for how many chunks of a class are there. most: as many as one such bin has room for."""
        number = int(self._firsts[position])
        if item.single and self._relaxation.conflicts[number, number]:
            most = 1
        if item.pool >= 0:
            most = min(most, self._relaxation.item_types[number].most)
        variable = self._program.add_variable(0.0)
        self._placed[position].append((variable, 1.0))
        if most * _IMPLIED < _fractional_fit(item, self._relaxation.requests[number]):
            self._program.add_row(-UNBOUNDED, 0.0, [(variable, 1.0), (node, -float(most))])
        for group, domains in zip(self._relaxation.affinity_groups, self._domains, strict=True):
            if number in group.members and group.key in item.domains:
                count = -float(self._counts[position])
                is_there = [(domains[value], count) for value in sorted(item.domains[group.key])]
                self._program.add_row(-UNBOUNDED, 0.0, [(variable, 1.0), *is_there])
        return variable

    def _add_resources(self, here: list[tuple[int, int]], room: Amounts, node: int, counts: list[bool]) -> None:
        for resource in range(len(room)):
            terms = [
                (variable, float(self._relaxation.requests[self._firsts[position], resource] / max(room[resource], 1)))
                for position, variable in here
                if counts[position]
            ]
            if any(share for _, share in terms):
                self._program.add_row(-UNBOUNDED, 0.0, [*terms, (node, -1.0)])

    def add_totals(self) -> None:
        """The rows over all bins; the last ones, one a class, are that all chunks have a place."""
        for pool, nodes in sorted(self._by_pool.items()):
            self._program.add_row(-UNBOUNDED, float(self._relaxation.most_nodes[pool]), nodes)
        for count, placed in zip(self._counts, self._placed, strict=True):
            self._program.add_row(float(count), UNBOUNDED, placed)


def _fractional_fit(item: RelaxedBin, request: Amounts) -> float:
    wanted = request > 0
    return float((item.room[wanted] / request[wanted]).min()) if wanted.any() else float(PLENTY)


def _classes(relaxation: Relaxation) -> list[list[int]]:
    """Item types that no row of the program tells apart."""
    shape = (len(relaxation.bins), len(relaxation.item_types))
    fits = np.array([item.fits for item in relaxation.bins], dtype=np.int64).reshape(shape)
    found: dict[tuple[object, ...], list[int]] = {}
    for number, item in enumerate(relaxation.item_types):
        groups = tuple(place for place, group in enumerate(relaxation.affinity_groups) if number in group.members)
        same = (
            relaxation.requests[number].tobytes(),
            fits[:, number].tobytes(),
            relaxation.conflicts[number].tobytes(),
        )
        found.setdefault((*same, item.most, item.batch.part, groups), []).append(number)
    return list(found.values())


def _cliques(relaxation: Relaxation) -> list[frozenset[int]]:
    """Item types of which one node takes one chunk in all."""
    groups: dict[bytes, list[int]] = {}
    conflicts = relaxation.conflicts
    for number in np.flatnonzero(conflicts.diagonal()).tolist():
        groups.setdefault(conflicts[number].tobytes(), []).append(number)
    return [frozenset(members) for members in groups.values() if bool(conflicts[np.ix_(members, members)].all())]
