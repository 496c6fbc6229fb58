"""Places batch after batch: first what was placed before stays, then existing bins are filled, then new nodes are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from reconciler.placement.arrays import BATCH, BIN, Numbers
from reconciler.placement.batches import RANK_OF, Batch
from reconciler.placement.constraints.pod_rules import SpreadRule, affinity_of
from reconciler.placement.engine.domains import Balance
from reconciler.placement.engine.fill import has_room
from reconciler.placement.engine.open import settle
from reconciler.placement.engine.over_domains import OverDomains
from reconciler.placement.engine.retention import Retention
from reconciler.placement.engine.state import State
from reconciler.placement.engine.walk import BatchWalk
from reconciler.placement.loops.kernel import plain

_ATTEMPTS = 4


class Packer:
    """Places batches into a state."""

    def __init__(self, state: State, batches: Sequence[Batch]) -> None:
        self._state = state
        self._batches = batches
        self._retention = Retention(state, batches, self.broken)
        self.unplaced: dict[int, int] = {}
        """By batch number, how many chunks have no place so far."""
        self._refused: dict[int, tuple[int, ...]] = {}
        """For batches that found no place: the counts under their spread constraints at their last attempt."""
        self.moving = 0
        """How many chunks did not stay where they were when all were last placed. Pods that wait for room are not counted."""

    def place_all(self) -> dict[int, int]:
        """Places all batches so that spread constraints hold for everything together.

        Returns how many chunks found no place, by batch number (only batches with some).

        Nodes made for one demand may unbalance another that was placed before. Then everything is placed again with those
        nodes' domains expected. A demand that is still off balance after a few attempts is left out.
        """
        saved = self._state.save()
        left_out: frozenset[int] = frozenset()
        for attempt in range(_ATTEMPTS + len(self._batches)):
            self.moving = 0
            self.unplaced = {item.number: item.count for item in self._batches if item.number in left_out}
            self._place([item for item in self._batches if item.number not in left_out])
            broken = self.broken()
            if not broken:
                break
            for rules in broken.values():
                self._state.expect_planned(rules)
            if attempt >= _ATTEMPTS:
                last = next(item for item in self._batches if item.number == max(broken))
                others = () if last.whole is None else [item for item in self._batches if item.whole == last.whole]
                left_out |= {item.number for item in (last, *others)}
            self._state.roll_back(saved)
        self._place_refused(left_out)
        settle(self._state)
        return self.unplaced

    def place_settled(self) -> dict[int, int]:
        """Places only what leaves no choice: pending pods that take existing room, and chunks that stay where they were.

        Returns how many chunks of each other batch are left."""
        self.unplaced = {}
        self._place([item for item in self._batches if item.waits])
        left: dict[int, int] = {}
        others = [item for item in self._batches if not item.waits]
        steady = self._retention.all_of(others)
        for _, equals in groupby(others, key=RANK_OF):
            rank = list(equals)
            stayed = steady or self._retention.rank(rank)
            left |= {batch.number: batch.count - stayed[batch.number] for batch in rank}
        return {number: count for number, count in left.items() if count}

    def place_rest(self, missing: Mapping[int, int]) -> dict[int, int]:
        """Places chunks that found no place, as far as there is room. No other chunk is moved.

        missing: how many, by batch number. Returns how many still have no place.
        """
        self.unplaced = dict(missing)
        self._place_refused(missing.keys())
        return self.unplaced

    def broken(self) -> dict[int, list[SpreadRule]]:
        """Spread rules that do not hold for what is placed now, by batch number."""
        # Pending pods that go to existing nodes are bound before any new node comes up.
        later = [item for item in self._batches if item.needs.shape.topology_spread and not item.waits]
        spread = {item.number: constraints for item in later if (constraints := self._state.constraints(item)).spread}
        if not spread:
            return {}
        sets = {constraints: place for place, constraints in enumerate(dict.fromkeys(spread.values()))}
        under: dict[SpreadRule, list[Numbers]] = {}
        used_by = self._bins_by({number: sets[constraints] for number, constraints in spread.items()})
        for constraints, place in sets.items():
            for rule in constraints.spread if place in used_by else ():
                under.setdefault(rule, []).append(used_by[place])
        balance = Balance(self._state)
        # A rule that holds for all batches under it holds for each of them. Most rules do.
        if all(balance.holds(rule, np.unique(np.concatenate(used))) for rule, used in under.items()):
            return {}
        broken = {
            number: [rule for rule in spread[number].spread if not balance.holds(rule, used)]
            for number, used in self._bins_by({number: number for number in spread}).items()
        }
        return {number: found for number, found in broken.items() if found}

    def _bins_by(self, together: Mapping[int, int]) -> dict[int, Numbers]:
        """The bins that batches use which have a number in common. together: by number of a batch."""
        rows, number_of = self._state.placed(), [together.get(batch.number, -1) for batch in self._state.batches]
        numbers, used = np.array(number_of, dtype=np.int64)[rows[:, BATCH]], rows[:, BIN]
        bins = 1 + int(used.max(initial=0))
        keys = np.unique(numbers[numbers >= 0] * bins + used[numbers >= 0])
        found, firsts = np.unique(keys // bins, return_index=True)
        return dict(zip(found.tolist(), np.split(keys % bins, firsts[1:]), strict=False))

    def _place(self, batches: Sequence[Batch]) -> None:
        """Within each rank, chunks that were placed before come first, so that new ones do not displace them."""
        steady: dict[int, int] | None = None
        walk: BatchWalk | None = None
        for level, equals in groupby(batches, key=RANK_OF):
            rank = list(equals)
            if level.after_pods and steady is None:
                others = [item for item in batches if not item.pods]
                # Where all batches are of one rank, that rank is judged below.
                steady = self._retention.all_of(others) if len(others) > len(rank) else {}
            stayed = steady or self._retention.rank(rank)
            self.moving += sum(item.count - stayed[item.number] for item in rank if not item.waits)
            for whole, members in groupby(rank, key=lambda batch: batch.whole):
                if whole is not None:
                    self._place_whole(list(members), stayed)
                    continue
                one_by_one = list(members)
                wanted = [batch.count - stayed[batch.number] for batch in one_by_one]
                turns: Iterable[int] = range(len(one_by_one))
                if self._may_walk(one_by_one, wanted):
                    walk = walk or BatchWalk(self._state, batches)
                    turns = walk.over(one_by_one, wanted)
                for index in turns:
                    batch = one_by_one[index]
                    self._note(batch, wanted[index] - self._place_batch(batch, wanted[index]))
            self._try_again(rank)
        self._try_again(batches)

    def _may_walk(self, batches: Sequence[Batch], wanted: Sequence[int]) -> bool:
        """Whether the loops are compiled, or pay off for chunks that new nodes are made for. Elsewhere the walk takes twice as long."""
        state = self._state
        if state.kernel is plain():
            pairs = zip(batches, wanted, strict=True)
            left = (count for batch, count in pairs if batch.opens_nodes and not has_room(state, batch))
            state.expect_work(max(left, default=0))
        return state.kernel is not plain()

    def _place_refused(self, left_out: Collection[int]) -> None:
        """Another chance for chunks that were left out, or had to expect empty nodes made for others.

        Those nodes are planned by now, with what is on them. Where that would unbalance another demand, none gets it."""
        expected = self._state.topology.expected
        again = [
            item
            for item in self._batches
            if item.number in self.unplaced and not item.waits
            if item.number in left_out or any(rule.counter in expected for rule in self._state.constraints(item).spread)
        ]
        self._state.topology.expect_nothing()
        saved, unplaced = self._state.save(), dict(self.unplaced)
        for item in again:
            self._refused.pop(item.number, None)
        self._try_again(again)
        if again and self.broken():
            self._state.roll_back(saved)
            self.unplaced = unplaced

    def _note(self, batch: Batch, missing: int) -> None:
        if missing:
            self.unplaced[batch.number] = missing
            self._refused[batch.number] = self._around(batch)
        else:
            self.unplaced.pop(batch.number, None)

    def _around(self, batch: Batch) -> tuple[int, ...]:
        """The counts that have to change before spread constraints may allow the batch more."""
        spread = self._state.constraints(batch).spread
        counters = self._state.topology.counters
        return (self._state.planned.count, *(counters[rule.counter].total for rule in spread)) if spread else ()

    def _has_another_chance(self, batch: Batch) -> bool:
        """Pods that it has affinity to may have been placed meanwhile. Where more pods count, spread may allow more."""
        if batch.needs.shape.pod_affinity:
            return True
        return not batch.waits and self._refused.get(batch.number) != self._around(batch)

    def _place_whole(self, batches: Sequence[Batch], stayed: dict[int, int]) -> bool:
        """Places all chunks of a demand or none; returns whether all."""
        if all(stayed[batch.number] == batch.count for batch in batches):
            return True
        saved = self._state.save()
        # Batches with affinity may come in the order before the pods that they have it to.
        affinity_last = sorted(batches, key=lambda batch: bool(batch.needs.shape.pod_affinity))
        for order in (batches, affinity_last) if affinity_last != list(batches) else (batches,):
            if self.place_until_one_is_left(order)[1] is None:
                for item in batches:
                    self._note(item, 0)
                return True
            self._state.roll_back(saved)
        for item in batches:
            self._note(item, item.count)
        return False

    def place_until_one_is_left(self, batches: Sequence[Batch]) -> tuple[int, Batch | None]:
        """Places chunks of a demand that is placed as a whole, until one finds no place.

        Returns how many were placed, and the batch of the first that was not; None where all of them were."""
        placed = 0
        for batch in batches:
            stayed = self._retention.one(batch)
            came = self._place_batch(batch, batch.count - stayed)
            placed += stayed + came
            if stayed + came < batch.count:
                return placed, batch
        return placed, None

    def _try_again(self, batches: Sequence[Batch]) -> None:
        """Tries chunks that found no place again, until another round places none. Others placed since may have helped them."""
        progress = bool(self.unplaced)
        while progress:
            progress = False
            for whole, members in groupby(batches, key=lambda batch: batch.whole):
                lonely = [batch for batch in members if batch.number in self.unplaced]
                hopeful = [batch for batch in lonely if self._has_another_chance(batch)]
                if hopeful and whole is not None:
                    progress = self._place_whole(lonely, dict.fromkeys(self.unplaced, 0)) or progress
                    continue
                for batch in hopeful:
                    missing = self.unplaced[batch.number]
                    placed = self._place_batch(batch, missing)
                    progress = progress or placed > 0
                    self._note(batch, missing - placed)

    def _place_batch(self, batch: Batch, count: int) -> int:
        """Places up to `count` chunks of one batch; returns how many.

        First without new nodes, since to a spread constraint a node yet to come is an empty domain. Only if that is not enough
        are they placed again with new nodes.
        """
        if not count:
            return 0
        state = self._state
        constraints = state.constraints(batch)
        saved = state.save() if constraints.by_domain else None
        placed = self._place_on(batch, count, opening=False) if has_room(state, batch) else 0
        if placed == count or not batch.opens_nodes:
            return placed
        if saved is not None and placed:
            state.roll_back(saved)
            placed = 0
        elif batch.preferences:
            placed += self._place_preferred(batch, count - placed)
        placed += self._place_on(batch, count - placed, opening=True)
        step = 1 if constraints.host_spread else 0
        while step and placed < count:
            step = self._place_on(batch, count - placed, opening=True, settled=True)
            placed += step
        return placed

    def _place_preferred(self, batch: Batch, count: int) -> int:
        """Places chunks that found no room on new nodes that meet as many of their preferences as any can."""
        placed = 0
        for needs in batch.preferences:
            firmer = replace(batch, needs=needs, preferences=())
            if placed < count:
                # The bootstrap is for required affinity. A preferred one without pods yet does not make a chunk the first.
                if self._nobody_yet(firmer) and not self._nobody_yet(batch):
                    continue
                placed += self._place_on(firmer, count - placed, opening=True)
        return placed

    def _nobody_yet(self, batch: Batch) -> bool:
        """Whether no pod exists yet that its chunks have required affinity to, other than pods like themselves."""
        return self._state.topology.nobody_yet(affinity_of(self._state.constraints(batch).rules))

    def _place_on(self, batch: Batch, count: int, *, opening: bool, settled: bool = False) -> int:
        over = OverDomains(self._state, batch, opening=opening, settled=settled, others=self._batches)
        return over.place(count)
