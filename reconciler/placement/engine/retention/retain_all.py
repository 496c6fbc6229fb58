"""Which chunks stay where they were, judged for all batches together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice, permutations

from reconciler.placement.batches import Batch
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.retention.retain_batch import retain_batch, stays_for, stays_of
from reconciler.placement.engine.retention.retain_by_bin import retain_by_bin
from reconciler.placement.engine.state import State

_MOST_REORDERED = 4
"""Up to this many batches that were placed before, every order in which they might stay is tried."""


class Retention:
    """What bins held before, and which of it stays. broken: by batch, the spread constraints that do not hold for everything
    placed."""

    def __init__(
        self,
        state: State,
        batches: Sequence[Batch],
        broken: Callable[[], dict[int, list[SpreadRule]]],
    ) -> None:
        self._state = state
        self._batches = batches
        self._broken = broken
        self._stays = stays_of(state)

    def all_of(self, batches: Sequence[Batch]) -> dict[int, int]:
        """How many chunks of each batch stay, if all can and none is new. Otherwise the answer is empty and nothing is placed.

        So chunks of a higher priority can stay beside chunks of a lower one that they have affinity to."""
        if not self._stays or any(stays_for(self._stays, item) < item.count for item in batches):
            return {}
        saved = self._state.save()
        stayed = self._in_best_order(batches, ())
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
            stayed = self._in_best_order(rank, moving)
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

    def _in_best_order(self, rank: Sequence[Batch], moving: Collection[int | None]) -> dict[int, int]:
        """Chunks placed in one order may not be able to stay in another. So while some would move, and there are few, other
        orders are tried."""
        saved = self._state.save()
        best, stayed = rank, self._in_order(rank, moving)
        known = {item.number: min(item.count, stays_for(self._stays, item)) for item in rank}
        held = [item for item in rank if known[item.number]]
        if any(stayed[item.number] < known[item.number] and self._state.constraints(item).spread for item in held):
            self._state.roll_back(saved)
            loosely = self._in_order(rank, moving, loosely=True)
            if sum(loosely.values()) == sum(known.values()) and self._is_balanced(rank):
                return loosely
            self._state.roll_back(saved)
            stayed = self._in_order(rank, moving)
        if not 1 < len(held) <= _MOST_REORDERED or sum(stayed.values()) >= sum(known.values()):
            return stayed
        most = sum(stayed.values())
        for order in islice(permutations(held), 1, None):
            self._state.roll_back(saved)
            now = sum(self._in_order(order, moving).values())
            if now > most:
                most, best = now, order
            if most == sum(known.values()):
                break
        self._state.roll_back(saved)
        if most < sum(known.values()):
            pieces = [item for item in held if item.whole is None or item.whole not in moving]
            if retain_by_bin(self._state, pieces, self._stays):
                return dict.fromkeys(stayed, 0) | {item.number: known[item.number] for item in pieces}
        return dict.fromkeys(stayed, 0) | self._in_order(best, moving)

    def _is_balanced(self, rank: Sequence[Batch]) -> bool:
        """Whether all spread constraints hold in the end.

        Only the end is judged, since chunks may have come in an order that this one does not repeat. Chunks of lower priorities
        are counted if needed, as long as all of them stayed (see `Packer.place_all`).
        """
        if not self._broken():
            return True
        lower = [item for item in self._batches if item.rank > rank[-1].rank and stays_for(self._stays, item)]
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
        constraints = self._state.constraints(batch)
        return retain_batch(self._state, batch, constraints, self._stays, loosely=loosely)
