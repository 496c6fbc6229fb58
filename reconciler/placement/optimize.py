"""The optimising mode: packs what the fast placement put on new nodes anew, for less. Used by place.

Column generation: a linear program (the master) says what a chunk of each kind is worth while it mixes the patterns known so
far; patterns that are worth more than their node costs are added, until none is found. Then whole nodes are taken out of the
mix, the rest is solved again, and so on until every chunk has a node. The fast placement's own nodes are patterns too.

What limits the work is counted in rounds, never in seconds, so that the same input has the same answer on any machine.
`expired` only guards against a pass that takes too long: then nothing of this is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.placement.label_table import Amounts
from reconciler.placement.optimize_kinds import Movable, movable
from reconciler.placement.optimize_master import Master, Solved, least_price
from reconciler.placement.optimize_patterns import Filler, Pattern
from reconciler.placement.optimize_rebuild import Rebuilder
from reconciler.placement.optimize_sizes import sizes_for
from reconciler.placement.state import State

FIRST_ROUNDS = 80
"""Rounds of new patterns for all chunks."""
NEXT_ROUNDS = 6
"""And each time that some were taken out."""
_PROGRESS = 1e-5
"""Part of the price that some rounds together must save for more of them to be made."""
_PATIENCE = 6
_SURE = 0.75
"""Part of a node from which it is taken whole without a look at the others."""


class Expired(Exception):  # noqa: N818 - not an error: the time that was given is over
    """The guard said so."""


@dataclass(frozen=True, slots=True)
class Packing:
    """bound: USD an hour that the nodes cost at least (None: not found); reason: why the fast placement stands, "" when it
    does not."""

    bound: float | None
    reason: str = ""


def optimize(state: State, *, per_node: int | None, expired: Callable[[], bool]) -> Packing:
    """Changes the planned nodes of the state where that makes them cheaper, else leaves it as it is. Raises `Invalid` when
    the solver cannot be loaded."""
    work = movable(state, per_node=per_node)
    if not work.kinds:
        return Packing(None, "no planned node may be packed anew")
    sizes = sizes_for(state, work)
    staying = sum(int(state.planned.price[index]) for index in work.fixed) / 1e9
    least = least_price(work, sizes)
    bound = None if least is None else least + staying
    try:
        chosen = _packed(work, Filler(work, sizes), expired)
    except Expired:
        return Packing(bound, "the time for it was over")
    if chosen is None:
        return Packing(bound, "the solver came to no end")
    return Packing(bound, Rebuilder(state, work).rebuild(chosen))


def _packed(work: Movable, filler: Filler, expired: Callable[[], bool]) -> list[Pattern] | None:
    """A pattern for each node; together they hold each chunk once."""
    left = work.counts
    master = Master(left)
    master.add([Pattern(tuple(sorted(held.items())), -1, price / 1e9) for held, price in work.nodes])
    chosen: list[Pattern] = []
    rounds = FIRST_ROUNDS
    while left.any():
        solved = _settled(master, filler, left, rounds, expired)
        if solved is None:
            return None
        taken = _taken(master.patterns, solved, left)
        for pattern in taken:
            for kind, count in pattern.kinds:
                left[kind] -= count
        chosen += taken
        master.ask_for(left)
        rounds = NEXT_ROUNDS
    return chosen


def _settled(master: Master, filler: Filler, left: Amounts, rounds: int, expired: Callable[[], bool]) -> Solved | None:
    prices: list[float] = []
    while True:
        solved = master.solve()
        if expired():
            raise Expired
        if solved is None:
            return None
        prices.append(solved.price)
        stuck = len(prices) > _PATIENCE and prices[-_PATIENCE - 1] - prices[-1] < _PROGRESS * prices[-1]
        if len(prices) > rounds or stuck or not master.add(filler.best(solved.worth, left)):
            return solved


def _taken(patterns: Sequence[Pattern], solved: Solved, left: Amounts) -> list[Pattern]:
    """Nodes that the master has whole, or nearly so; if there are none, the most nearly whole one. Never more of a kind than is
    left: the last of several patterns holds less then."""
    amounts = np.floor(solved.amounts + 1 - _SURE).astype(np.int64)
    if not amounts.any():
        amounts[int(solved.amounts.argmax())] = 1
    remaining = left.copy()
    taken = []
    for number in np.flatnonzero(amounts).tolist():
        for _ in range(int(amounts[number])):
            pattern = patterns[number]
            kinds = [(kind, min(count, int(remaining[kind]))) for kind, count in pattern.kinds]
            kinds = [(kind, count) for kind, count in kinds if count]
            for kind, count in kinds:
                remaining[kind] -= count
            if kinds:
                taken.append(Pattern(tuple(kinds), pattern.size, pattern.price))
    return taken
