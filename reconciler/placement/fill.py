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
    if not state.planned:
        return 0
    fits = np.zeros(len(state.planned), dtype=np.int64)
    narrowed: dict[int, PlannedBin] = {}
    wanted = wish.wanted.both(task.where)
    for index, planned in enumerate(state.planned):
        narrow = joined(state, planned, wanted, task.batch, soft_taints=wish.soft_taints)
        if narrow is None or not narrow.rows[planned.primary]:
            continue
        offers = state.offers[planned.pool]
        left = offers.room[offers.offerings.types_of[planned.primary]] - _taken(planned, task.batch)
        fits[index] = times(left, task.batch.needs.request)
        narrowed[index] = narrow
    if not fits.any():
        return 0
    numbers = range(len(state.bins), len(state.bins) + len(state.planned))
    fits = np.minimum(fits, _caps(state, task, numbers, np.flatnonzero(fits)))
    zeros = np.zeros(len(fits), dtype=np.int64)
    placed = 0
    for index, amount in choose(fits, zeros, zeros, count, single=task.single):
        amount = most_with_minimums(state, narrowed[index], task.batch, amount)  # noqa: PLW2901 - narrowed on purpose
        if amount:
            state.put_planned(task.batch, index, narrowed[index], amount)
            placed += amount
    return placed


def joined(
    state: State, planned: PlannedBin, wanted: Requirements, batch: Batch, *, soft_taints: bool
) -> PlannedBin | None:
    """The planned bin as it would be if chunks of the batch came to it, None when their labels or taints do not meet."""
    offers = state.offers[planned.pool]
    if not tolerated(offers.taints, batch.needs.shape.tolerations, soft_taints=soft_taints):
        return None
    rows = offers.rows_for(wanted)
    if isinstance(rows, NoRows):
        return None
    both = rows & planned.rows
    custom = wanted.without(offers.offerings.table.keys)
    if not both.any() or planned.own.conflict(custom) is not None:
        return None
    return replace(planned, rows=both, own=planned.own.both(custom), wanted=planned.wanted.both(wanted))


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
