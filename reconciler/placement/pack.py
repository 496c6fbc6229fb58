"""Places batch after batch: who was there before, then bins that are there, then new nodes. Used by place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby, islice, permutations

from reconciler.placement.balance import Balance, expect_planned
from reconciler.placement.batches import Batch
from reconciler.placement.counters import SpreadRule
from reconciler.placement.fill import fill_existing, has_room
from reconciler.placement.host_caps import Task
from reconciler.placement.kin import Course
from reconciler.placement.make import make_nodes
from reconciler.placement.requirements import ANYWHERE, Requirements
from reconciler.placement.spread import place_over_domains
from reconciler.placement.state import State
from reconciler.placement.stay import stay, stays_for, stays_of
from reconciler.placement.stay_order import stay_in_pieces

_ATTEMPTS = 4
_MOST_REORDERED = 4
"""Batches that were there before, up to which all orders are tried in which they may stay."""


class Packer:
    """Places batches into a state. per_node: most chunks of one demand on a node, None for no limit."""

    def __init__(self, state: State, batches: Sequence[Batch], *, per_node: int | None) -> None:
        self._state = state
        self._batches = batches
        self._per_node = per_node
        self._stays = stays_of(state)
        self._unplaced: dict[int, int] = {}
        self.moving = 0
        """Chunks that did not stay where they were, when all were placed last; pods that wait for room are left aside."""

    def place_all(self) -> dict[int, int]:
        """Places all batches so that spread constraints hold for everything together; returns how many chunks of each found
        no place, by batch number (those with some).

        Nodes made for one demand may unbalance another that was placed before. Then all is placed again with those nodes'
        domains expected; a demand that is still off balance after a few attempts is left out.
        """
        saved = self._state.save()
        left_out: frozenset[int] = frozenset()
        for attempt in range(_ATTEMPTS + len(self._batches)):
            self.moving = 0
            self._unplaced = {item.number: item.count for item in self._batches if item.number in left_out}
            self._place([item for item in self._batches if item.number not in left_out])
            broken = self.broken()
            if not broken:
                break
            for rules in broken.values():
                expect_planned(self._state, rules)
            if attempt >= _ATTEMPTS:
                last = next(item for item in self._batches if item.number == max(broken))
                left_out |= {item.number for item in self._batches if item is last or _same_whole(item, last)}
            self._state.put_back(saved)
        return self._unplaced

    @property
    def unplaced(self) -> dict[int, int]:
        """Chunks that found no place so far, by batch number."""
        return dict(self._unplaced)

    def place_settled(self) -> dict[int, int]:
        """Places only what is no matter of choice: pending pods that take what room there is, and chunks that stay where they
        were. Returns how many chunks of each other batch are left."""
        self._unplaced = {}
        self._place([item for item in self._batches if item.waits])
        left: dict[int, int] = {}
        others = [item for item in self._batches if not item.waits]
        steady = self._all_stay(others)
        for _, equals in groupby(others, key=rank_of):
            rank = list(equals)
            stayed = steady or self._stay_in(rank)
            left |= {batch.number: batch.count - stayed[batch.number] for batch in rank}
        return {number: count for number, count in left.items() if count}

    def broken(self) -> dict[int, list[SpreadRule]]:
        """Spread rules that do not hold for what is placed now, by batch number."""
        # Pending pods that go on what is there are bound before any new node comes.
        later = [item for item in self._batches if item.needs.shape.topology_spread and not item.waits]
        spread = {item.number: course for item in later if (course := self._state.course(item)).spread}
        together: dict[Course, set[int]] = {}
        for put in self._state.puts():
            if put.batch.number in spread:
                together.setdefault(spread[put.batch.number], set()).add(put.bin)
        under: dict[SpreadRule, set[int]] = {}
        for course, used in together.items():
            for rule in course.spread:
                under.setdefault(rule, set()).update(used)
        balance = Balance(self._state)
        # A rule that holds for all that are under it holds for each; most do.
        if all(balance.holds(rule, used) for rule, used in under.items()):
            return {}
        bins: dict[int, set[int]] = {}
        for put in self._state.puts():
            bins.setdefault(put.batch.number, set()).add(put.bin)
        broken = {
            number: balance.unbalanced(course.spread, bins.get(number, ()), hosts=True)
            for number, course in spread.items()
        }
        return {number: found for number, found in broken.items() if found}

    def _place(self, batches: Sequence[Batch]) -> None:
        """Of each priority those that were placed before stay first, so that what is new makes nobody move."""
        steady: dict[int, int] | None = None
        for (after_pods, _), equals in groupby(batches, key=rank_of):
            rank = list(equals)
            if after_pods and steady is None:
                steady = self._all_stay([item for item in batches if not item.pods])
            stayed = steady or self._stay_in(rank)
            self.moving += sum(item.count - stayed[item.number] for item in rank if not item.waits)
            for whole, members in groupby(rank, key=lambda batch: batch.whole):
                if whole is not None:
                    self._place_whole(list(members), stayed)
                    continue
                for batch in members:
                    wanted = batch.count - stayed[batch.number]
                    self._note(batch, wanted - self._place_batch(batch, wanted))
            self._seek_company(rank)
        self._seek_company(batches)

    def _note(self, batch: Batch, missing: int) -> None:
        if missing:
            self._unplaced[batch.number] = missing
        else:
            self._unplaced.pop(batch.number, None)

    def _all_stay(self, batches: Sequence[Batch]) -> dict[int, int]:
        """How many chunks of each batch stay, where nothing is new and all can: then those of a higher priority may need the
        company of others, beside whom they came. Empty, with the state as it was, where somebody has to move or to come."""
        if not self._stays or any(stays_for(self._stays, item) < item.count for item in batches):
            return {}
        saved = self._state.save()
        stayed = self._stay_in_best_order(batches, ())
        if all(stayed[item.number] == item.count for item in batches):
            return stayed
        self._state.put_back(saved)
        return {}

    def _stay_in(self, rank: Sequence[Batch]) -> dict[int, int]:
        """How many chunks of each batch stay where they were; a demand that is placed as a whole stays as a whole."""
        moving: set[int | None] = set()
        while True:
            if not self._stays:
                return dict.fromkeys((batch.number for batch in rank), 0)
            saved = self._state.save()
            stayed = self._stay_in_best_order(rank, moving)
            partly = {
                batch.whole
                for batch in rank
                if batch.whole is not None and batch.whole not in moving and stayed[batch.number] < batch.count
                if any(stayed[other.number] for other in rank if other.whole == batch.whole)
            }
            if not partly:
                return stayed
            self._state.put_back(saved)
            moving |= partly

    def _stay_in_best_order(self, rank: Sequence[Batch], moving: Collection[int | None]) -> dict[int, int]:
        """What came in one order may not be able to stay in another: while some have to move and they are few, other orders
        are tried."""
        saved = self._state.save()
        best, stayed = rank, self._stay_in_order(rank, moving)
        known = {item.number: min(item.count, stays_for(self._stays, item)) for item in rank}
        held = [item for item in rank if known[item.number]]
        if not 1 < len(held) <= _MOST_REORDERED or sum(stayed.values()) >= sum(known.values()):
            return stayed
        most = sum(stayed.values())
        for order in islice(permutations(held), 1, None):
            self._state.put_back(saved)
            now = sum(self._stay_in_order(order, moving).values())
            if now > most:
                most, best = now, order
            if most == sum(known.values()):
                break
        self._state.put_back(saved)
        if most < sum(known.values()):
            pieces = [item for item in held if item.whole is None or item.whole not in moving]
            if stay_in_pieces(self._state, pieces, self._stays, per_node=self._per_node):
                return dict.fromkeys(stayed, 0) | {item.number: known[item.number] for item in pieces}
        return dict.fromkeys(stayed, 0) | self._stay_in_order(best, moving)

    def _stay_in_order(self, order: Sequence[Batch], moving: Collection[int | None]) -> dict[int, int]:
        stayed = {batch.number: 0 for batch in order}
        for _ in range(2):  # those that want company may come before those they want
            for batch in order:
                if not stayed[batch.number] and (batch.whole is None or batch.whole not in moving):
                    stayed[batch.number] = self._stay(batch)
        return stayed

    def _stay(self, batch: Batch) -> int:
        return stay(self._state, batch, self._state.course(batch), self._stays, per_node=self._per_node)

    def _place_whole(self, batches: Sequence[Batch], stayed: dict[int, int]) -> bool:
        """All chunks of a demand or none; returns whether all."""
        if all(stayed[batch.number] == batch.count for batch in batches):
            return True
        saved = self._state.save()
        # Those that want company may stand before those they want.
        company_last = sorted(batches, key=lambda batch: bool(batch.needs.shape.pod_affinity))
        for order in (batches, company_last) if company_last != list(batches) else (batches,):
            if self._place_each(order):
                for item in batches:
                    self._note(item, 0)
                return True
            self._state.put_back(saved)
        for item in batches:
            self._note(item, item.count)
        return False

    def _place_each(self, batches: Sequence[Batch]) -> bool:
        """Until one has chunks left over."""
        for batch in batches:
            wanted = batch.count - self._stay(batch)
            if self._place_batch(batch, wanted) < wanted:
                return False
        return True

    def _seek_company(self, batches: Sequence[Batch]) -> None:
        """Chunks that want to be near others may have come before those: they get another chance, until none comes of it."""
        progress = True
        while progress:
            progress = False
            for whole, members in groupby(batches, key=lambda batch: batch.whole):
                lonely = [batch for batch in members if batch.number in self._unplaced]
                if not any(batch.needs.shape.pod_affinity for batch in lonely):
                    continue
                if whole is not None:
                    progress = self._place_whole(lonely, dict.fromkeys(self._unplaced, 0)) or progress
                    continue
                for batch in [item for item in lonely if item.needs.shape.pod_affinity]:
                    missing = self._unplaced[batch.number]
                    placed = self._place_batch(batch, missing)
                    progress = progress or placed > 0
                    self._note(batch, missing - placed)

    def _place_batch(self, batch: Batch, count: int) -> int:
        """Places up to `count` chunks of one batch; returns how many.

        First without new nodes. Only if that is not enough they are placed again with them, since a node yet to come is an
        empty domain that spread constraints look at.
        """
        if not count:
            return 0
        state = self._state
        course = state.course(batch)
        saved = state.save() if course.by_domain else None
        placed = self._place_on(batch, course, count, opening=False) if has_room(state, batch) else 0
        if placed == count or not batch.opens_nodes or batch.needs.shape.resource_claims:
            return placed
        if saved is not None and placed:
            state.put_back(saved)
            placed = 0
        else:
            placed += self._place_preferred(batch, count - placed)
        return placed + self._place_on(batch, course, count - placed, opening=True)

    def _place_preferred(self, batch: Batch, count: int) -> int:
        """Chunks that find no room, on new nodes that meet what they would rather have, as far as any can."""
        placed = 0
        for needs in batch.preferences:
            firmer = replace(batch, needs=needs, preferences=())
            if placed < count:
                course = self._state.course(firmer)
                # That nobody is near whom it would rather be makes no chunk the first of those near whom it has to be.
                if self._nobody_yet(course) and not self._nobody_yet(self._state.course(batch)):
                    continue
                placed += self._place_on(firmer, course, count - placed, opening=True)
        return placed

    def _nobody_yet(self, course: Course) -> bool:
        return self._state.topology.nobody_yet((*course.company, *course.host_company))

    def _place_on(self, batch: Batch, course: Course, count: int, *, opening: bool) -> int:
        def fill(where: Requirements, amount: int, may_open: bool) -> int:  # noqa: FBT001 - the flag that Fill documents
            task = Task(batch, where, course, bare=may_open, single=False, per_node=self._per_node)
            return _fill(self._state, task, amount, opening=may_open)

        if course.keys:
            return place_over_domains(
                *(self._state, batch, course, fill),
                count=count,
                opening=opening,
                per_node=self._per_node,
                others=self._batches,
            )
        return fill(ANYWHERE, count, opening)


def rank_of(batch: Batch) -> tuple[bool, int]:
    """Pending pods come first, then higher priorities."""
    return (not batch.pods, -batch.priority)


def _same_whole(one: Batch, other: Batch) -> bool:
    return one.whole is not None and one.whole == other.whole


def _fill(state: State, task: Task, count: int, *, opening: bool) -> int:
    company = task.course.host_company
    if company and state.topology.nobody_yet(company):
        return _first_on_a_host(state, task, count, opening=opening)
    placed = 0
    while placed < count:
        # With each round the emptiest host may hold more, which lets a spread constraint allow more on all of them.
        step = fill_existing(state, task, count - placed)
        placed += step
        if not step or not task.course.on_hosts:
            break
    if opening and placed < count:
        placed += make_nodes(state, task, count - placed)
    return placed


def _first_on_a_host(state: State, task: Task, count: int, *, opening: bool) -> int:
    """Pods that want to share a host and have none yet: the one node that takes most of them."""
    alone = replace(task, single=True)
    saved = state.save()
    placed = fill_existing(state, alone, count)
    if placed == count or not opening:
        return placed
    state.put_back(saved)
    made = make_nodes(state, alone, count)
    if made >= placed:
        return made
    state.put_back(saved)
    return fill_existing(state, alone, count)
