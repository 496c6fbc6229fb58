"""The linear programs of the optimising mode, on HiGHS. Used by packings; the only module that knows the solver.

highspy is loaded when this mode is used and not before. One thread, the simplex method and a fixed seed: the same program
gets the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconciler.model.errors import Invalid
from reconciler.placement.amounts import PLENTY, times
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.optimizing.effort import Effort
from reconciler.placement.optimizing.kinds import Movable, Pattern, most_of_each
from reconciler.placement.optimizing.patterns import Floats
from reconciler.placement.optimizing.sizes import Sizes

_WITHOUT_END = 1e30
_MOST_STEPS = 2**31 - 1
_SAME = 1.003
"""How many times as many chunks of a kind as a node takes may be there in parts without a condition of their own."""


def _solver() -> tuple[Any, Any]:
    try:
        import highspy  # noqa: PLC0415 - takes a while to load, and only this mode needs it
    except ImportError as error:
        raise Invalid(
            f"placement.mode is optimal, but the solver highspy cannot be loaded here: {error}",
            hint="install it (pip install highspy), or set placement.mode: fast",
            causes=(error,),
        ) from error
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    for name, value in (("threads", 1), ("random_seed", 1), ("solver", "simplex"), ("presolve", "off")):
        solver.setOptionValue(name, value)
    return highspy, solver


def _run(highs: Any, solver: Any, effort: Effort) -> bool:
    """Whether it came to the end within what is left of the work. The solver's clock goes on from run to run."""
    rows = solver.getNumRow()
    solver.setOptionValue("time_limit", solver.getRunTime() + effort.seconds)
    solver.setOptionValue("simplex_iteration_limit", min(effort.steps(rows), _MOST_STEPS))
    solver.run()
    effort.solved(max(0, int(solver.getInfo().simplex_iteration_count)), rows)
    return bool(solver.getModelStatus() == highs.HighsModelStatus.kOptimal)


@dataclass(frozen=True, slots=True)
class Solved:
    """price: USD an hour; amounts: how many nodes of each pattern; worth: of one more chunk of each kind."""

    price: float
    amounts: Floats
    worth: Floats


class Master:
    """How many nodes of each pattern hold all chunks at the least price, parts of nodes allowed."""

    def __init__(self, counts: Amounts) -> None:
        self._highs, self._solver = _solver()
        self.patterns: list[Pattern] = []
        self._known: set[Pattern] = set()
        for count in counts.tolist():
            self._solver.addRow(float(count), _WITHOUT_END, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def add(self, patterns: Sequence[Pattern]) -> int:
        """Returns how many were new."""
        added = 0
        for pattern in patterns:
            if pattern in self._known:
                continue
            self._known.add(pattern)
            self.patterns.append(pattern)
            rows = np.array([number for number, _ in pattern.kinds], dtype=np.int32)
            amounts = np.array([count for _, count in pattern.kinds], dtype=np.float64)
            self._solver.addCol(pattern.price, 0.0, _WITHOUT_END, len(rows), rows, amounts)
            added += 1
        return added

    def ask_for(self, counts: Amounts) -> None:
        for number, count in enumerate(counts.tolist()):
            self._solver.changeRowBounds(number, float(count), _WITHOUT_END)

    def solve(self, effort: Effort) -> Solved | None:
        """None when the solver did not come to an end."""
        if not _run(self._highs, self._solver, effort):
            return None
        solution = self._solver.getSolution()
        return Solved(
            float(self._solver.getInfo().objective_function_value),
            np.array(solution.col_value, dtype=np.float64),
            np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0),
        )


@dataclass(frozen=True, slots=True)
class Least:
    """price: USD an hour; worth: of one more chunk of each kind, when that is what is paid."""

    price: float
    worth: Floats


def least_price(movable: Movable, sizes: Sizes, effort: Effort) -> Least | None:
    """What no placement of these chunks on such nodes can go below: nodes and chunks may be split, and of the rules only these
    are kept: resources in sum, how many of a kind one node takes and of kinds that exclude each other one
    a node. None when the solver did not come to an end."""
    rooms, prices, takes = _rooms(sizes)
    kinds = _alike(movable, takes)
    caps = most_of_each(movable)
    cliques = _cliques(movable)
    highs, solver = _solver()
    program = _Program(highs)
    held: list[list[tuple[int, float]]] = [[] for _ in kinds]
    for size, room in enumerate(rooms):
        node = program.column(float(prices[size]) / 1e9)
        here: list[tuple[int, int]] = []
        for position, members in enumerate(kinds):
            kind = members[0]
            most = min(int(times(room[None, :], movable.asked[kind])[0]), int(caps[kind])) if takes[size, kind] else 0
            if most:
                column = program.column(0.0)
                held[position].append((column, 1.0))
                here.append((kind, column))
                if most * _SAME < _most_in_parts(room, movable.asked[kind]):  # else the sums below say the same
                    program.row(-_WITHOUT_END, 0.0, [(column, 1.0), (node, -float(most))])
        sums = [
            [(column, float(movable.asked[kind, item] / max(room[item], 1))) for kind, column in here]
            for item in range(len(room))
        ]
        sums += [[(column, 1.0) for kind, column in here if kind in clique] for clique in cliques]
        for terms in sums:
            if any(share for _, share in terms):
                program.row(-_WITHOUT_END, 0.0, [*terms, (node, -1.0)])
    for position, members in enumerate(kinds):
        program.row(float(sum(movable.kinds[number].count for number in members)), _WITHOUT_END, held[position])
    solver.setOptionValue("presolve", "on")
    program.give(solver)
    if not _run(highs, solver, effort):
        return None
    worth = np.zeros(len(movable.kinds))
    for value, members in zip(solver.getSolution().row_dual[-len(kinds) :], kinds, strict=True):
        worth[members] = max(0.0, value)
    return Least(float(solver.getInfo().objective_function_value), worth)


def _most_in_parts(room: Amounts, asked: Amounts) -> float:
    wanted = asked > 0
    return float((room[wanted] / asked[wanted]).min()) if wanted.any() else float(PLENTY)


def _rooms(sizes: Sizes) -> tuple[Amounts, Amounts, Mask]:
    """Sizes that have the same room as one, at the least price, for all kinds that may be on any of them: the domains that
    chunks keep are no condition of the bound, since the fast placement chose them."""
    rooms, numbers = np.unique(sizes.rooms, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    prices = np.full(len(rooms), PLENTY, dtype=np.int64)
    np.minimum.at(prices, numbers, sizes.prices)
    takes = np.zeros((len(rooms), sizes.takes.shape[1]), dtype=np.bool_)
    np.logical_or.at(takes, numbers, sizes.takes)
    return np.asarray(rooms, dtype=np.int64), prices, takes


def _alike(movable: Movable, takes: Mask) -> list[list[int]]:
    """Kinds that no condition of the bound tells apart."""
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for number in range(len(movable.kinds)):
        parts = (movable.asked[number], takes[:, number], movable.apart[number], movable.shares[number])
        groups.setdefault(tuple(part.tobytes() for part in parts), []).append(number)
    return list(groups.values())


def _cliques(movable: Movable) -> list[frozenset[int]]:
    """Kinds of which one node takes one chunk in all."""
    alone = np.flatnonzero(movable.apart.diagonal())
    groups: dict[bytes, list[int]] = {}
    for number in alone.tolist():
        groups.setdefault(movable.apart[number].tobytes(), []).append(number)
    return [
        frozenset(members) for members in groups.values() if bool(movable.apart[np.ix_(members, members)].all())
    ] + [
        frozenset(np.flatnonzero(movable.shares[:, column]).tolist())
        for column in range(movable.shares.shape[1])
        if movable.bounds[column] == 1
    ]


class _Program:
    """A linear program as it is written down: columns from zero up, then rows."""

    def __init__(self, highs: Any) -> None:
        self._highs = highs
        self._costs: list[float] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[float] = []

    def column(self, cost: float) -> int:
        self._costs.append(cost)
        return len(self._costs) - 1

    def row(self, lower: float, upper: float, terms: Sequence[tuple[int, float]]) -> None:
        self._lower.append(lower)
        self._upper.append(upper)
        self._columns += [column for column, value in terms if value]
        self._values += [float(value) for _, value in terms if value]
        self._starts.append(len(self._columns))

    def give(self, solver: Any) -> None:
        program = self._highs.HighsLp()
        program.num_col_, program.num_row_ = len(self._costs), len(self._lower)
        program.col_cost_ = np.array(self._costs)
        program.col_lower_ = np.zeros(len(self._costs))
        program.col_upper_ = np.full(len(self._costs), _WITHOUT_END)
        program.row_lower_, program.row_upper_ = np.array(self._lower), np.array(self._upper)
        program.a_matrix_.format_ = self._highs.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        program.a_matrix_.index_ = np.array(self._columns, dtype=np.int32)
        program.a_matrix_.value_ = np.array(self._values)
        solver.passModel(program)
