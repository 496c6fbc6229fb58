"""Chunks onto bins that are there: existing bins and nodes already planned. Used by pack.

Held bins come before placeholders and those before others; among them as few bins as possible are taken, and of those
that fit the fullest, so that few nodes are protected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.amounts import PLENTY, times
from reconciler.placement.batches import Batch
from reconciler.placement.bins import HELD, OTHER
from reconciler.placement.candidates import NoRows
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.requirements import Requirements
from reconciler.placement.shapes import Wish, ports_clash, tolerated
from reconciler.placement.state import PlannedBin, State
from reconciler.placement.topology import ApartRule, Rule, SpreadRule, TogetherRule


@dataclass(frozen=True, slots=True)
class Task:
    """One round of placing a batch. where: domains that chunks must go to; rules: all topology rules of the shape; bare:
    new nodes may come up empty, so that no host can be taken for granted; single: everything on one node (the first of
    pods that want to be together); per_node: most chunks of one demand on a node."""

    batch: Batch
    where: Requirements
    rules: tuple[Rule, ...]
    bare: bool
    single: bool
    per_node: int | None

    @property
    def host_rules(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.key == HOSTNAME_LABEL]


def fill_existing(state: State, task: Task, count: int, only: Mask | None = None) -> int:
    """Places up to `count` chunks on existing bins; returns how many. only: no other bins."""
    batch = task.batch
    mask = state.bins.usable & state.bins.fitting(batch.needs) & state.bins.tolerated(batch.needs)
    for key, values in task.where.entries:
        undecided = np.array([isinstance(cell, tuple) for cell in state.bins.table.column(key)[1]], dtype=np.bool_)
        mask = mask & state.bins.table.allowed(key, values) & ~undecided[state.bins.table.column(key)[0]]
    if only is not None:
        mask = mask & only
    if not mask.any():
        return 0
    fits = np.where(mask, times(state.free(batch), batch.needs.request), 0)
    if fits.any():
        fits = np.minimum(fits, _caps(state, task, range(len(state.bins)), np.flatnonzero(fits)))
    chosen = choose(fits, state.bins.rank, state.fullness, count, single=task.single)
    for number, amount in chosen:
        state.put_existing(batch, number, amount)
    return sum(amount for _, amount in chosen)


def choose(fits: Amounts, rank: Amounts, fullness: Amounts, count: int, *, single: bool) -> list[tuple[int, int]]:
    """Bins to take and how many chunks on each. While no bin of a rank takes all that is left, the one that takes most is
    used; then the one that it fills best."""
    chosen: list[tuple[int, int]] = []
    for wanted in range(HELD, OTHER + 1):
        numbers = np.flatnonzero((rank == wanted) & (fits > 0))
        order = numbers[np.lexsort((numbers, fullness[numbers], -fits[numbers]))]
        amounts = fits[order]
        first = 0
        while count > 0 and first < len(order):
            enough = int(np.searchsorted(-amounts[first:], -count, side="right"))
            if enough:
                # Of equal amounts the fullest comes first in the order.
                least = amounts[first + enough - 1]
                position = first + int(np.searchsorted(-amounts[first:], -least, side="left"))
                chosen.append((int(order[position]), count))
                return chosen
            if single:
                break
            chosen.append((int(order[first]), int(amounts[first])))
            count -= int(amounts[first])
            first += 1
    if single and not chosen and fits.any():
        best = int(np.lexsort((np.arange(len(fits)), fullness, rank, -fits))[0])
        return [(best, min(count, int(fits[best])))]
    return chosen


def _caps(state: State, task: Task, numbers: range, asked: Amounts) -> Amounts:
    """The most chunks that topology, host ports and the share of one node allow on each of these bins (only those in
    `asked`, by position, are looked at)."""
    caps = np.full(len(numbers), PLENTY, dtype=np.int64)
    for rule in task.host_rules:
        bound = host_bound(state, rule, bare=task.bare)
        counts = state.topology.counters[rule.counter].counts
        for position in asked.tolist():
            caps[position] = min(caps[position], allowed_on(rule, counts.get(numbers[position], 0), bound, task.single))
    ports = task.batch.needs.shape.host_ports
    for position in asked.tolist() if ports or task.per_node is not None else ():
        if ports:
            clash = ports_clash(ports, state.ports_of(numbers[position]))
            caps[position] = min(caps[position], 0 if clash else 1)
        if task.per_node is not None:
            held = state.demand_counts.get((numbers[position], task.batch.demand), 0)
            caps[position] = min(caps[position], max(0, task.per_node - held))
    return caps


def host_bound(state: State, rule: Rule, *, bare: bool) -> int:
    """How many counted pods a host may come to have under a spread rule."""
    if not isinstance(rule, SpreadRule):
        return 0
    if bare:
        return rule.max_skew
    hosts = state.topology.existing_domains(rule)
    hosts |= state.planned_domains(rule.key, state.topology.counters[rule.counter].counted.inclusion)
    if len(hosts) < rule.min_domains:
        return rule.max_skew
    counter = state.topology.counters[rule.counter]
    return rule.max_skew + min((counter.count(host) for host in hosts), default=0)


def allowed_on(rule: Rule, counted: int, bound: int, first: bool) -> int:  # noqa: FBT001 - one of four plain facts
    """How many more chunks a rule allows where `counted` pods count already."""
    if isinstance(rule, TogetherRule):
        return PLENTY if counted > 0 or first else 0
    if isinstance(rule, ApartRule):
        return 0 if counted else 1 if rule.counts_itself else PLENTY
    if not rule.counts_itself:
        return PLENTY if counted <= bound else 0
    return max(0, bound - counted)


def fill_planned(state: State, task: Task, wish: Wish, count: int) -> int:
    """Places up to `count` chunks in what is left over on planned nodes, without making any of them larger or dearer."""
    meeting = Meeting(state, task, wish)
    able = [
        index
        for index, planned in enumerate(state.planned)
        if meeting.admits(planned) and meeting.keeps_primary(planned)
    ]
    if not able:
        return 0
    left = np.array([_left(state, state.planned[index], task.batch) for index in able])
    fits = np.zeros(len(state.planned), dtype=np.int64)
    fits[able] = times(left, task.batch.needs.request)
    if not fits.any():
        return 0
    numbers = range(len(state.bins), len(state.bins) + len(state.planned))
    fits = np.minimum(fits, _caps(state, task, numbers, np.flatnonzero(fits)))
    zeros = np.zeros(len(fits), dtype=np.int64)
    placed = 0
    for index, wanted in choose(fits, zeros, zeros, count, single=task.single):
        joined = meeting.join(state.planned[index])
        amount = most_with_minimums(state, joined, task.batch, wanted)
        if amount:
            state.put_planned(task.batch, index, joined, amount)
            placed += amount
    return placed


class Meeting:
    """Whether and how chunks of a batch, by one of its wishes, may come to planned nodes; worked out once for each pool."""

    def __init__(self, state: State, task: Task, wish: Wish) -> None:
        self._wanted = wish.wanted.both(task.where)
        self._rows: dict[int, Mask] = {}
        self._own = Requirements()
        for number, offers in enumerate(state.offers):
            rows = offers.rows_for(self._wanted)
            tolerations = task.batch.needs.shape.tolerations
            if not isinstance(rows, NoRows) and tolerated(offers.taints, tolerations, soft_taints=wish.soft_taints):
                self._rows[number] = rows
                self._own = self._wanted.without(offers.offerings.table.keys)

    def keeps_primary(self, planned: PlannedBin) -> bool:
        """Whether the node may stay what it would be bought as now."""
        return bool(self._rows[planned.pool][planned.primary])

    def admits(self, planned: PlannedBin) -> bool:
        """Whether labels and taints meet; of the rows that are left, `join` tells."""
        if planned.pool not in self._rows:
            return False
        return not self._own.entries or planned.own.conflict(self._own) is None

    def join(self, planned: PlannedBin) -> PlannedBin:
        return replace(
            planned,
            rows=self._rows[planned.pool] & planned.rows,
            own=planned.own.both(self._own),
            wanted=planned.wanted.both(self._wanted),
        )


def _left(state: State, planned: PlannedBin, batch: Batch) -> Amounts:
    offers = state.offers[planned.pool]
    return np.asarray(offers.room[offers.offerings.types_of[planned.primary]] - _taken(planned, batch), dtype=np.int64)


def _taken(planned: PlannedBin, batch: Batch) -> Amounts:
    """What counts against room for this batch (see `State.free`)."""
    taken = planned.minimum if batch.keeps_minimum else np.maximum(planned.running, planned.minimum)
    return np.asarray(planned.empty + taken, dtype=np.int64)


def most_with_minimums(state: State, planned: PlannedBin, batch: Batch, amount: int) -> int:
    """The most chunks, up to `amount`, with which the pool's minValues still hold."""
    offers = state.offers[planned.pool]
    if not offers.minimums:
        return amount
    while amount:
        used = planned.used + batch.needs.request * amount
        rows = planned.rows & offers.rows_holding(used)
        if meets_minimums(state, planned.pool, rows):
            return amount
        amount -= 1
    return 0


def meets_minimums(state: State, pool: int, rows: Mask) -> bool:
    offers = state.offers[pool]
    table = offers.offerings.table
    return all(
        key not in table.keys or len(np.unique(table.column(key)[0][rows])) >= minimum
        for key, minimum in offers.minimums
    )


def largest_left(state: State, planned: PlannedBin, batch: Batch) -> Amounts:
    """How many chunks would fit by type if the planned node became it; 0 for types it may not become."""
    offers = state.offers[planned.pool]
    fits = times(offers.room - _taken(planned, batch), batch.needs.request)
    return np.where(offers.offerings.types_in(planned.rows), fits, 0)
