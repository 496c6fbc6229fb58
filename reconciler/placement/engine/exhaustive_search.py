"""Every way to place a few chunks, and the best of them.

Depth first, one chunk at a time, in any order, to any destination. A partial way is dropped as soon as it cannot beat the best
known. The work is bounded by a number of ways, not by time, so that equal input gives an equal answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from reconciler.placement.amounts import PLENTY
from reconciler.placement.batches import Batch
from reconciler.placement.engine.balance import expect_planned
from reconciler.placement.engine.destinations import Destination, closed_to, destinations_of
from reconciler.placement.engine.pack import Packer
from reconciler.placement.engine.state import State

Rate: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

MOST_WAYS = 1500
"""The most partial ways to try. Each takes about a millisecond."""
MOST_WAYS_OF_TRIALS = 300
"""For trials, of which a pass makes several and most come to nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """Compared field by field, less is better. missing: chunks without a place by rank, the highest rank first. price: of new
    nodes, in billionths of a USD an hour. nodes: the number of new ones."""

    missing: tuple[int, ...]
    price: int
    nodes: int


def score_of(state: State, batches: Sequence[Batch], missing: Mapping[int, int]) -> Score:
    by_rank = dict.fromkeys(sorted({batch.rank for batch in batches}), 0)
    for batch in batches:
        by_rank[batch.rank] += missing.get(batch.number, 0)
    count = state.planned.count
    return Score(tuple(by_rank.values()), int(state.planned.price[:count].sum()), count)


@dataclass(frozen=True, slots=True)
class Step:
    batch: Batch
    destination: Destination


class Search:
    """All ways to place a few chunks into a state. better_than: the answer to beat. missing: chunks that the best way leaves
    without a place."""

    def __init__(
        self, state: State, packer: Packer, batches: Sequence[Batch], *, better_than: Score, most_ways: int = MOST_WAYS
    ) -> None:
        self.missing: dict[int, int] = {}
        self._state = state
        self._packer = packer
        self._most_ways = most_ways
        self._batches = batches
        self._by_number = {batch.number: batch for batch in batches}
        self._best = better_than
        self._best_steps: list[Step] | None = None
        self._steps: list[Step] = []
        self._constraint_sets = {batch.number: state.constraints(batch) for batch in batches}
        self._closed = {batch.number: closed_to(state, batch, self._constraint_sets[batch.number]) for batch in batches}
        self._takes_turns = bool(state.limited) and len(state.weights) > 1
        """Whether a chunk may find a heavier NodePool at its limit because another chunk came first."""
        self._over_hosts = [rule for item in self._constraint_sets.values() for rule in item.host_spread]
        self._class_of = self._classes_of_batches()
        self._rate = _least_prices(state)
        self._cheapest = min((int(offers.prices.min()) for offers in state.offers if len(offers.prices)), default=0)
        """The price of the cheapest node that can be bought."""
        self._without = packer.unplaced
        self._seen: set[tuple[object, ...]] = set()

    def best(self, left: dict[int, int]) -> list[Step] | None:
        """The steps of a better way, None when none was found; the state is left as it was. left: chunks by batch."""
        self._explore(Counter(left))
        return self._best_steps

    def _classes_of_batches(self) -> dict[int, int]:
        """By batch number, the number of the first batch whose chunks no rule tells apart from its own."""
        known: dict[tuple[object, ...], int] = {}
        classes = {}
        for batch in self._batches:
            alike: tuple[object, ...] = (
                *(batch.needs.shape, batch.pods, batch.keeps_minimum, batch.opens_nodes, batch.rank),
                None if batch.whole is None else batch.number,
            )
            classes[batch.number] = known.setdefault(alike, batch.number)
        return classes

    def _explore(self, left: Counter[int]) -> None:
        saved = self._state.save()
        self._judge(left)
        for step in self._following(left):
            if len(self._seen) >= self._most_ways:
                return
            if self._is_hopeless(left, step.destination.extra):
                continue
            step.destination.take(self._state)
            self._steps.append(step)
            left[step.batch.number] -= 1
            key = self._key()
            if key not in self._seen:
                self._seen.add(key)
                self._explore(left)
            left[step.batch.number] += 1
            self._steps.pop()
            self._state.roll_back(saved)

    def _judge(self, left: Counter[int]) -> None:
        missing = {number: count for number, count in {**self._without, **left}.items() if count}
        outcome = score_of(self._state, self._batches, missing)
        if outcome < self._best and self._is_whole(left) and self._is_balanced():
            self._best, self._best_steps, self.missing = outcome, list(self._steps), missing

    def _is_balanced(self) -> bool:
        """Whether spread holds. Where nodes are made, the minimum over hosts is 0, since another may always come (as in Karpenter)."""
        topology = self._state.topology
        if self._state.planned.count:
            expect_planned(self._state, self._over_hosts)
        broken = self._packer.broken()
        topology.expected.clear()
        return not broken

    def _is_whole(self, left: Counter[int]) -> bool:
        """Whether every demand that is placed as a whole has all of its chunks placed, or none."""
        short = {batch.whole for batch in self._batches if batch.whole is not None and left[batch.number]}
        there = {entry.batch.whole for entry in self._state.entries()}
        return not short & there

    def _following(self, left: Counter[int]) -> list[Step]:
        """One more chunk of each class, to each destination, the cheapest first."""
        found: list[tuple[int, Step]] = []
        classes = set()
        opening = not self._is_hopeless(left, self._cheapest)
        for number, count in sorted(left.items()):
            if not count or self._class_of[number] in classes:
                continue
            classes.add(self._class_of[number])
            batch = self._by_number[number]
            moves = destinations_of(
                self._state,
                batch,
                self._constraint_sets[number],
                closed=self._closed[number],
                opening=opening,
            )
            found += [(move.extra, Step(batch, move)) for move in moves]
            if moves and self._is_alone(batch):
                found = [(move.extra, Step(batch, move)) for move in moves]
                break
        return [step for _, step in sorted(found, key=lambda item: item[0])]

    def _is_alone(self, batch: Batch) -> bool:
        """Whether no rule between pods concerns its chunks, so that their turn does not matter."""
        if self._takes_turns:
            return False
        return not self._constraint_sets[batch.number].rules and not self._state.topology.counts_of(batch.needs)

    def _is_hopeless(self, left: Counter[int], extra: int) -> bool:
        if any(self._best.missing):
            return False
        planned = self._state.planned
        price = int(planned.price[: planned.count].sum()) + extra
        return max(price, _least_price(self._state, self._by_number, left, self._rate)) >= self._best.price

    def _key(self) -> tuple[object, ...]:
        """Equal for ways that differ only in order, in the numbers of new nodes, or in which of equal chunks went where."""
        held: dict[int, Counter[int]] = {}
        for step in self._steps:
            held.setdefault(step.destination.bin, Counter())[self._class_of[step.batch.number]] += 1
        first, planned = self._state.base, self._state.planned
        return tuple(
            sorted(
                (number if number < first else -1 - int(planned.template[number - first]), *sorted(counts.items()))
                for number, counts in held.items()
            )
        )


def least_price(state: State, batches: Sequence[Batch], left: Mapping[int, int]) -> int:
    """A lower bound on the price of all new nodes once these chunks have a place: resource by resource, as if chunks could be split.

    left: chunks by batch number."""
    return _least_price(state, {batch.number: batch for batch in batches}, left, _least_prices(state))


def _least_price(state: State, batches: Mapping[int, Batch], left: Mapping[int, int], rate: Rate) -> int:
    wanted = np.zeros(len(state.columns.names), dtype=np.int64)
    for number, count in left.items():
        wanted += batches[number].needs.request * count
    # Chunks that running pods count towards (KeepMinimum) take no room of their own.
    counted_as = next((batch for batch in batches.values() if batch.keeps_minimum), next(iter(batches.values())))
    free = np.maximum(state.free(counted_as), 0)[state.bins.usable].sum(axis=0)
    held = state.taken(counted_as)[: state.planned.count].sum(axis=0)
    return int(((held + np.maximum(wanted - free, 0)) * rate).max(initial=0))


def _least_prices(state: State) -> Rate:
    """By resource, the least price per unit of it among all types."""
    rate = np.full(len(state.columns.names), np.inf)
    for offers in state.offers:
        prices = np.full(len(offers.room), PLENTY, dtype=np.int64)
        np.minimum.at(prices, offers.offerings.types_of, offers.prices)
        for price, room in zip(prices.tolist(), offers.room, strict=True):
            rate = np.where(room > 0, np.minimum(rate, price / np.maximum(room, 1)), rate)
    return np.where(np.isinf(rate), 0.0, rate)
