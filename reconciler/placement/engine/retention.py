"""Lets chunks stay where they were, as far as they still fit, so that an unchanged cluster gives an unchanged plan.

What a bin held is read from its annotation; what a booking holds, from the inventory. A bin that is held but does not say for
what is only preferred (see `fill.py`). Batches are judged together: chunks placed in one order may not be able to stay in another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from itertools import islice, permutations
from typing import TypeAlias

from reconciler.model.placement import read_holdings
from reconciler.placement.arrays import PLENTY
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.pod_rules import AffinityRule, SpreadRule, affinity_of
from reconciler.placement.constraints.topology import ConstraintSet
from reconciler.placement.engine.domains import is_balanced
from reconciler.placement.engine.fill import Task, fill_one
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import ANYWHERE

Held: TypeAlias = list[tuple[int, int]]
"""Numbers of bins, and how many chunks each held."""
Stays: TypeAlias = dict[tuple[str, int], Held]
"""By demand and group: the bins that held its chunks."""


def stays_of(state: State) -> Stays:
    """The bins that held each demand's chunks: those where pods run first, then those that hold most.

    A demand that became smaller so gives up whole nodes that hold nothing else. Bins that take no chunks at all are left out: no
    order lets a chunk stay there, so none is to be looked for."""
    stays: Stays = {}
    usable = state.bins.usable
    booked = {(number, demand) for number, demand, _ in state.bins.booked}
    for number, words in state.bins.holding.items():
        for key, count in read_holdings(words).items():
            if usable[number] and (number, key[0]) not in booked:
                stays.setdefault(key, []).append((number, count))
    for number, demand, counts in state.bins.booked:
        for group, count in enumerate(counts):
            if count and usable[number]:
                stays.setdefault((demand, group), []).append((number, count))
    for places in stays.values():
        if len(places) > 1:
            places.sort(key=lambda place: (not state.bins.running[place[0]].any(), -place[1], place[0]))
    return stays


def _allowed(state: State, constraints: ConstraintSet, first: Sequence[AffinityRule], number: int) -> int:
    """How many chunks the bin may take by rules on labels other than the hostname, spread excepted. first: rules that do not apply to the
    first chunk.

    0 on a bin whose domain is not decided yet."""
    labels = state.bins.origins[number].labels
    if any(isinstance(labels.get(key), tuple) for key in constraints.keys):
        return 0
    allowed = PLENTY
    for rule in constraints.on_labels:
        domain = state.decided(number, rule.key)
        if domain is None:
            allowed = allowed if rule.apart else 0
        elif not rule.by_minimum and rule not in first:
            allowed = min(allowed, rule.allowed(state.topology.counters[rule.counter].count(domain), 0))
    return allowed


_MOST_REORDERED = 4
"""Up to this many batches that were placed before, every order in which they might stay is tried."""


class Retention:
    """What bins held before, and which of it stays. broken: by batch, the spread constraints that do not hold for everything
    placed."""

    def __init__(
        self, state: State, batches: Sequence[Batch], broken: Callable[[], dict[int, list[SpreadRule]]]
    ) -> None:
        self._state = state
        self._batches = batches
        self._broken = broken
        self._stays = stays_of(state)

    def all_of(self, batches: Sequence[Batch]) -> dict[int, int]:
        """How many chunks of each batch stay, if all can and none is new. Otherwise the answer is empty and nothing is placed.

        So chunks of a higher priority can stay beside chunks of a lower one that they have affinity to."""
        if not self._stays or any(self._known(item) < item.count for item in batches):
            return {}
        saved = self._state.save()
        stayed = self._together(batches, ())
        if all(stayed[item.number] == item.count for item in batches):
            return stayed
        self._state.roll_back(saved)
        return {}

    def rank(self, rank: Sequence[Batch]) -> dict[int, int]:
        """How many chunks of each batch stay where they were; a demand that is placed as a whole stays as a whole."""
        moving: set[int | None] = set()
        while True:
            if not self._stays:
                return dict.fromkeys((batch.number for batch in rank), 0)
            saved = self._state.save()
            stayed = self._together(rank, moving)
            partly = {
                batch.whole
                for batch in rank
                if batch.whole is not None and batch.whole not in moving and stayed[batch.number] < batch.count
                if any(stayed[other.number] for other in rank if other.whole == batch.whole)
            }
            if not partly:
                return stayed
            self._state.roll_back(saved)
            moving |= partly

    def _together(self, rank: Sequence[Batch], moving: Collection[int | None]) -> dict[int, int]:
        """Chunks placed in one order may not be able to stay in another. So while some would move, and there are few, other
        orders are tried. Spread is judged for all together where not all can stay batch by batch."""
        saved = self._state.save()
        stayed = self._in_order(rank, moving)
        known = {item.number: min(item.count, self._known(item)) for item in rank}
        most, every = sum(stayed.values()), sum(known.values())
        if most == every:
            return stayed
        held = [item for item in rank if known[item.number]]
        if any(stayed[item.number] < known[item.number] and self._state.constraints(item).spread for item in held):
            self._state.roll_back(saved)
            loosely = self._in_order(rank, moving, loosely=True)
            if sum(loosely.values()) == every and self._is_balanced(rank):
                return loosely
        best = rank
        for order in islice(permutations(held), 1, None) if len(held) <= _MOST_REORDERED else ():
            self._state.roll_back(saved)
            now = sum(self._in_order(order, moving).values())
            if now > most:
                most, best = now, order
            if most == every:
                break
        self._state.roll_back(saved)
        return dict.fromkeys(stayed, 0) | self._in_order(best, moving)

    def _is_balanced(self, rank: Sequence[Batch]) -> bool:
        """Whether all spread constraints hold in the end.

        Only the end is judged, since chunks may have come in an order that this one does not repeat. Chunks of lower priorities
        are counted if needed, as long as all of them stayed (see `Packer.place_all`).
        """
        if not self._broken():
            return True
        lower = [item for item in self._batches if item.rank > rank[-1].rank and self._known(item)]
        if not lower or self._state.topology.expected:
            return False
        saved = self._state.save()
        self._in_order(lower, (), loosely=True)
        balanced = not self._broken()
        self._state.roll_back(saved)
        return balanced

    def _in_order(
        self, order: Sequence[Batch], moving: Collection[int | None], *, loosely: bool = False
    ) -> dict[int, int]:
        stayed = {batch.number: 0 for batch in order}
        for _ in range(2):  # a batch with affinity may come before the pods that it has it to
            for batch in order:
                if not stayed[batch.number] and (batch.whole is None or batch.whole not in moving):
                    stayed[batch.number] = self.one(batch, loosely=loosely)
        return stayed

    def one(self, batch: Batch, *, loosely: bool = False) -> int:
        """Places on each bin as many chunks as the batch's demand had there, in the order of `stays_of`; returns how many.

        If that would break a spread rule none stays, since the rule is judged for all of them together. loosely: spread is not
        judged here, since the caller judges it for all batches.
        """
        state, constraints, held = self._state, self._state.constraints(batch), self._held(batch)
        if not held:
            return 0
        if loosely:
            on_hosts = tuple(rule for rule in constraints.on_hosts if not rule.by_minimum)
            constraints = copy(constraints)
            constraints.spread, constraints.host_spread, constraints.on_hosts = (), (), on_hosts
        affinity, saved = affinity_of(constraints.rules), state.save()
        if state.topology.bootstrapping(affinity):  # the first chunk binds all others to its domain
            held = sorted(held, key=lambda place: -place[1])
        placed, step, left = 0, 1, dict(held)
        while step:
            # Each round may raise the minimum over hosts, and then a spread constraint allows more on every host.
            step = 0
            for number, count in left.items():
                first = state.topology.bootstrapping(affinity)
                amount = min(count, batch.count - placed - step, _allowed(state, constraints, first, number))
                if amount > 0:
                    task = Task(batch, (ANYWHERE,), constraints, bare=False, single=bool(first))
                    stayed = fill_one(state, task, number, amount)
                    left[number] -= stayed
                    step += stayed
            placed += step
            if not constraints.host_spread:
                break
        if not is_balanced(state, batch, constraints.spread, since=saved):
            state.roll_back(saved)
            return 0
        return placed

    def _held(self, batch: Batch) -> Held:
        """The bins that held its chunks. A batch that is not of pods is one group of one demand."""
        member = batch.members[0]
        return [] if batch.pods else self._stays.get((str(member.demand), member.group), [])

    def _known(self, batch: Batch) -> int:
        """How many chunks of the batch were placed before."""
        return sum(count for _, count in self._held(batch))
