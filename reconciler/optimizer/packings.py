"""The optimising mode: packs what the fast placement put on new nodes anew, for less. Used by optimal.

Column generation: a linear program (the master) says what a chunk of each kind is worth while it mixes the patterns known so
far; patterns that are worth more than their node costs are added, until none is found. Then the mix is rounded to whole
nodes. The fast placement's own nodes are patterns too.

What limits the work is counted in rounds and steps, never in seconds, so that the same input has the same answer on any
machine. The clock only guards against a pass that takes too long: then the best that was found by then is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.optimizer.effort import LITTLE, MOST_FOR_BOUND, Effort
from reconciler.optimizer.kinds import Movable, Pattern, movable
from reconciler.optimizer.least import Least, least_price, worths_of
from reconciler.optimizer.master import Master
from reconciler.optimizer.patterns import Filler
from reconciler.optimizer.rebuild import Rebuilder
from reconciler.optimizer.relaxation import relaxation_of
from reconciler.optimizer.rounding import MORE_WAYS, WAYS, Mixer
from reconciler.optimizer.sizes import Sizes, sizes_for
from reconciler.placement.engine.state import State

FIRST_ROUNDS = 60
"""Rounds of new patterns for all chunks."""
OUT_OF_TIME = "the time for it was over"


@dataclass(frozen=True, slots=True)
class Packing:
    """bound: USD an hour that the nodes cost at least (None: not found); reason: why the fast placement stands, "" when it
    does not; too_slow: whether the guard struck, so that another run may find something else."""

    bound: float | None
    reason: str = ""
    too_slow: bool = False


def optimize(state: State, *, seconds_left: Callable[[], float]) -> Packing:
    """Changes the planned nodes of the state where that makes them cheaper, else leaves it as it is. Raises `Invalid` when
    the solver cannot be loaded."""
    least = least_price(relaxation_of(state), Effort(seconds_left, most=MOST_FOR_BOUND))
    bound = None if least is None else least.price
    work = movable(state)
    if not work.kinds:
        return Packing(bound, "no planned node may be packed anew")
    sizes = sizes_for(state, work)
    effort = Effort(seconds_left)
    found = packings(work, sizes, least, effort)
    if not found:
        return Packing(bound, OUT_OF_TIME if effort.too_slow else "the solver came to no end", effort.too_slow)
    rebuilder = Rebuilder(state, work)
    reason = ""
    for patterns in found:
        reason = rebuilder.rebuild(patterns)
        if not reason:
            break
    if reason and effort.too_slow:
        reason = f"{OUT_OF_TIME} and {reason}"
    return Packing(bound, reason, effort.too_slow)


def packings(work: Movable, sizes: Sizes, least: Least | None, effort: Effort) -> list[list[Pattern]]:
    """Those that were found, the cheapest first: for each a pattern for each node, which together hold each chunk once."""
    start = sizes.worths(work) if least is None else worths_of(least, [kind.batch.number for kind in work.kinds])
    master = Master(work.counts)
    master.add([Pattern(tuple(sorted(held.items())), -1, price / 1e9) for held, price in work.nodes])
    mixer = Mixer(master, Filler(work, sizes), work.counts, effort)
    solved = mixer.mixed(work.counts, rounds=FIRST_ROUNDS, start=start)
    if solved is None:
        return []
    found = [mixer.rounded(solved, None)]
    for number, way in enumerate((*WAYS, *MORE_WAYS)):
        if effort.over or (number >= len(WAYS) and effort.spent > LITTLE):
            break
        found.append(mixer.rounded(solved, way))
    return sorted(found, key=sizes.price_of(work))
