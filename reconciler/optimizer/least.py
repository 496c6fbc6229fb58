"""The least possible price, by a linear program in which nodes and chunks may be split. Used by packings.

What a program without those splits cannot go below is found out too where it is small: of a few chunks a fraction of a node
is all that the other counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.effort import Effort
from reconciler.optimizer.patterns import Floats
from reconciler.optimizer.relaxation import Relaxation, Site
from reconciler.optimizer.solver import WITHOUT_END, Program, loaded_solver, run
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.engine.arrays import MINIMUM, RUNNING

_SAME = 1.003
"""How many times as many chunks of a kind as a node takes may be there in parts without a condition of their own."""
_FEW_COLUMNS = 1500
_FEW_NODES = 20
"""Up to which the program is solved with whole nodes too: of more nodes what one of them is short of being whole is little."""


@dataclass(frozen=True, slots=True)
class Least:
    """price: USD an hour that no valid placement goes below; worth: of one more chunk of each batch, by its number."""

    price: float
    worth: Mapping[int, float]


def least_price(open_: Relaxation, effort: Effort) -> Least | None:
    """Of the rules only these are kept: resources in sum, how many of a kind one node takes, of kinds that exclude each other one
    a node, those that want each other's company in one domain, and how many nodes may be made. None when the solver did not
    come to an end."""
    highs, solver = loaded_solver()
    program = Program(highs)
    writing = _Writing(open_, program)
    for site in open_.sites:
        writing.site(site)
    writing.finish()
    solver.setOptionValue("presolve", "on")
    program.give(solver)
    if not run(highs, solver, effort):
        return None
    price = float(solver.getInfo().objective_function_value)
    solution = solver.getSolution()
    worths = solution.row_dual[-len(writing.groups) :]
    worth: dict[int, float] = {}
    for value, members in zip(worths, writing.groups, strict=True):
        worth |= dict.fromkeys(members, max(0.0, value))
    nodes = sum(solution.col_value[column] for column in writing.made)
    if program.columns <= _FEW_COLUMNS and nodes <= _FEW_NODES:
        price = max(price, program.whole_bound(solver, effort))
    return Least(price, {batch: worth[number] for batch, number in open_.number_of.items()})


class _Writing:
    """Writes the program down, site by site. groups: kinds that no condition tells apart, as one; made: columns of nodes that
    are to be made."""

    def __init__(self, open_: Relaxation, program: Program) -> None:
        self._open = open_
        self._program = program
        self.groups = _alike(open_)
        self._firsts = np.array([members[0] for members in self.groups], dtype=np.int64)
        self._counts = [sum(open_.kinds[number].count for number in members) for members in self.groups]
        self._alone = open_.apart.diagonal()
        self._cliques = _cliques(open_)
        self._held: list[list[tuple[int, float]]] = [[] for _ in self.groups]
        self._limited: dict[int, list[tuple[int, float]]] = {}
        self.made: list[int] = []
        self._domains = [self._domains_of(number) for number in range(len(open_.companies))]
        parts = [open_.kinds[first].batch.part for first in self._firsts.tolist()]
        self._fixed = [part != MINIMUM for part in parts]
        self._lean = [part != RUNNING for part in parts]
        self._both = MINIMUM in parts

    def _domains_of(self, number: int) -> dict[str, int]:
        """Columns: whether the company is in a domain."""
        key = self._open.companies[number].key
        values = {value for site in self._open.sites for value in site.domains.get(key, ())}
        found = {value: self._program.column(0.0, most=1.0, whole=True) for value in sorted(values)}
        if found:
            self._program.row(-WITHOUT_END, 1.0, [(column, 1.0) for column in found.values()])
        return found

    def site(self, site: Site) -> None:
        open_, program = self._open, self._program
        most = float(site.most) if site.most < PLENTY else WITHOUT_END
        node = program.column(site.price / 1e9, most=most, whole=site.whole)
        if site.pool >= 0:
            self.made.append(node)
        here: list[tuple[int, int]] = []  # positions of groups, and columns
        for position, takes in enumerate(site.takes[self._firsts].tolist()):
            if takes:
                here.append((position, self._some_of(site, node, position, int(takes))))
        self._keep_room(here, site.room, node, self._fixed)
        if self._both:
            self._keep_room(here, site.lean, node, self._lean)
        if site.whole:
            for clique in self._cliques:
                terms = [(column, 1.0) for position, column in here if int(self._firsts[position]) in clique]
                if len(terms) > 1:
                    program.row(-WITHOUT_END, 0.0, [*terms, (node, -1.0)])
        if site.pool in open_.nodes:
            self._limited.setdefault(site.pool, []).append((node, 1.0))

    def _some_of(self, site: Site, node: int, position: int, most: int) -> int:
        """A column for how many of a group are there; most: as many as there is room for on one."""
        kind = int(self._firsts[position])
        if site.whole and self._alone[kind]:
            most = 1
        if site.pool >= 0:
            most = min(most, self._open.kinds[kind].most)
        column = self._program.column(0.0)
        self._held[position].append((column, 1.0))
        if most * _SAME < _most_in_parts(site, self._open.asked[kind]):  # else the sums of what is asked say the same
            self._program.row(-WITHOUT_END, 0.0, [(column, 1.0), (node, -float(most))])
        self._keep_company(site, kind, position, column)
        return column

    def _keep_room(self, here: list[tuple[int, int]], room: Amounts, node: int, counted: list[bool]) -> None:
        for item in range(len(room)):
            terms = [
                (column, float(self._open.asked[self._firsts[position], item] / max(room[item], 1)))
                for position, column in here
                if counted[position]
            ]
            if any(share for _, share in terms):
                self._program.row(-WITHOUT_END, 0.0, [*terms, (node, -1.0)])

    def _keep_company(self, site: Site, kind: int, position: int, column: int) -> None:
        for number, affinity in enumerate(self._open.companies):
            if kind in affinity.members and affinity.key in site.domains:
                open_here = [
                    (self._domains[number][value], -float(self._counts[position]))
                    for value in sorted(site.domains[affinity.key])
                ]
                self._program.row(-WITHOUT_END, 0.0, [(column, 1.0), *open_here])

    def finish(self) -> None:
        """What holds for all sites together; at last, that all chunks have a place."""
        for pool, nodes in sorted(self._limited.items()):
            self._program.row(-WITHOUT_END, float(self._open.nodes[pool]), nodes)
        for count, held in zip(self._counts, self._held, strict=True):
            self._program.row(float(count), WITHOUT_END, held)


def _most_in_parts(site: Site, asked: Amounts) -> float:
    wanted = asked > 0
    return float((site.room[wanted] / asked[wanted]).min()) if wanted.any() else float(PLENTY)


def _alike(open_: Relaxation) -> list[list[int]]:
    """Kinds that no condition of the program tells apart."""
    takes = np.array([site.takes for site in open_.sites], dtype=np.int64).reshape(len(open_.sites), len(open_.kinds))
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, kind in enumerate(open_.kinds):
        affinity = tuple(place for place, item in enumerate(open_.companies) if number in item.members)
        parts = (open_.asked[number].tobytes(), takes[:, number].tobytes(), open_.apart[number].tobytes())
        groups.setdefault((*parts, kind.most, kind.batch.part, affinity), []).append(number)
    return list(groups.values())


def _cliques(open_: Relaxation) -> list[frozenset[int]]:
    """Kinds of which one node takes one chunk in all."""
    groups: dict[bytes, list[int]] = {}
    for number in np.flatnonzero(open_.apart.diagonal()).tolist():
        groups.setdefault(open_.apart[number].tobytes(), []).append(number)
    return [frozenset(members) for members in groups.values() if bool(open_.apart[np.ix_(members, members)].all())]


def worths_of(least: Least, batches: list[int]) -> Floats:
    """USD an hour for a chunk of each of these batches, by their numbers."""
    return np.array([least.worth.get(number, 0.0) for number in batches], dtype=np.float64)
