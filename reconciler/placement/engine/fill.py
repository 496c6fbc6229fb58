"""Places chunks on existing bins, as many on each as the rules allow.

Held bins come first, then placeholders, then all others. Of each, as few bins as possible are used, the fullest that fit first, so
that few nodes are protected from disruption. What rules between pods and host ports allow on a bin is said here
for planned nodes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.arrays import BOUND, CODE, COUNTER, PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.constraints.domain_counters import TopologyRule
from reconciler.placement.constraints.topology import ConstraintSet, Topology
from reconciler.placement.engine.state import State
from reconciler.placement.loops.planned_nodes import allowed
from reconciler.placement.nodes.existing import HELD, OTHER
from reconciler.placement.requirements import Requirements


@dataclass(slots=True, eq=False)
class Task:
    """One attempt to place a batch. Never changed.

    wheres: domains that chunks may go to; new nodes are made in the first one. constraints: the rules between pods that they are under.
    bare: new nodes may be made. They start empty, so the minimum for spread over hosts is 0.
    single: all chunks go to one node, for the first of pods with affinity to each other.
    """

    batch: Batch
    wheres: Sequence[Requirements]
    constraints: ConstraintSet
    bare: bool
    single: bool


NO_NUMBERS: Numbers = np.zeros(0, dtype=np.int64)
_NO_RULES: Numbers = np.zeros((0, BOUND + 1), dtype=np.int64)


def rule_row(topology: Topology, rule: TopologyRule, bound: int = 0) -> tuple[int, ...]:
    """A rule as the loops read it. bound: of one on the hostname."""
    key = -1 if rule.key == HOSTNAME_LABEL else list(topology.numbers).index(rule.key)
    return rule.row(topology.counters[rule.counter].row, key, bound)


def host_rules(state: State, task: Task) -> Numbers:
    """The rules on the hostname, as the loops read them."""
    on_hosts = task.constraints.on_hosts
    if not on_hosts:
        return _NO_RULES
    # The affinity rules that do not apply to the first pod of its kind.
    without = state.topology.bootstrapping(task.constraints.host_affinity) if task.single else ()

    def made() -> Numbers:
        bounds = {
            rule: rule.bound(0) if task.bare else state.bound_of(rule) for rule in on_hosts if rule not in without
        }
        rows = [rule_row(state.topology, rule, bound) for rule, bound in bounds.items()]
        return np.array(rows, dtype=np.int64).reshape(len(rows), BOUND + 1)

    # Where new nodes start empty, the bounds never change.
    return state.once(("host rules", task.constraints, without), made) if task.bare else made()


def most_on_empty(rules: Numbers) -> int:
    """The most chunks that rules on the hostname allow on an empty node."""
    return min((allowed(row[CODE], row[BOUND], 0) for row in rules.tolist()), default=PLENTY)


def host_caps(state: State, task: Task, bins: Numbers) -> Amounts:
    """By bin, existing or planned, how many chunks the rules on the hostname allow."""
    caps: Amounts = np.full(len(bins), PLENTY, dtype=np.int64)
    for row, code, bound in host_rules(state, task)[:, [COUNTER, CODE, BOUND]].tolist():
        counted = state.topology.hosts.table[row, bins]
        by_count = [allowed(code, bound, number) for number in range(int(counted.max(initial=0)) + 1)]
        caps = np.minimum(caps, np.array(by_count, dtype=np.int64)[counted])
    return caps


def fill_existing(state: State, task: Task, count: int) -> int:
    """Places up to `count` chunks on existing bins; returns how many."""
    fits = existing_fits(state, task)
    chosen = choose(fits, state.bins.rank, state.fullness, count, single=task.single) if fits.any() else []
    for number, amount in chosen:
        state.add_existing(task.batch, number, amount)
    return sum(amount for _, amount in chosen)


def fill_one(state: State, task: Task, number: int, count: int) -> int:
    """Places up to `count` chunks on the existing bin that held them before, even if it takes no others; returns how many."""
    bins, most = _within(state.constraints_on_nodes, task.batch, np.array([number], dtype=np.int64))
    if not len(bins):
        return 0
    placed = min(count, int(most[0]), int(host_caps(state, task, bins)[0]))
    if placed > 0:
        state.add_existing(task.batch, number, placed)
    return max(0, placed)


def existing_fits(state: State, task: Task) -> Amounts:
    """By existing bin, how many chunks it takes."""
    fits: Amounts = np.zeros(state.base, dtype=np.int64)
    if not state.base:
        return fits
    mask = np.logical_or.reduce([state.bins.table.matching(where) for where in task.wheres])
    bins, most = _within(state.constraints_on_nodes, task.batch, np.flatnonzero(mask))
    if len(bins):
        fits[bins] = np.minimum(most, host_caps(state, task, bins))
        fits[state.bins.closed] = 0
    return fits


def _within(constraints: Sequence[Constraint], batch: Batch, bins: Numbers) -> tuple[Numbers, Amounts]:
    """The bins that every constraint allows to take a chunk, and how many chunks each may take."""
    most: Amounts = np.full(len(bins), PLENTY, dtype=np.int64)
    for constraint in constraints:
        if len(bins) and constraint.concerns(batch):
            most = np.minimum(most, constraint.most(batch, bins))
            able = most > 0
            if not able.all():
                bins, most = bins[able], most[able]
    return bins, most


def has_room(state: State, batch: Batch) -> bool:
    """Whether some existing bin could take a chunk if there were no rules between pods."""
    return state.base > 0 and len(_within(state.constraints_on_nodes, batch, np.arange(state.base))[0]) > 0


def choose(fits: Amounts, rank: Amounts, fullness: Amounts, count: int, *, single: bool) -> list[tuple[int, int]]:
    """The bins to use, and how many chunks go to each. While no bin of a rank takes all remaining chunks, the one that takes
    most is used. After that it is the bin that the rest fills best."""
    chosen: list[tuple[int, int]] = []
    for wanted in range(HELD, OTHER + 1):
        numbers, first = np.flatnonzero((rank == wanted) & (fits > 0)), 0
        if not single and fits[numbers].max(initial=0) < count:
            numbers = numbers[np.lexsort((numbers, fullness[numbers], -fits[numbers]))]
            while first < len(numbers) and (amount := int(fits[numbers[first]])) < count:
                chosen.append((int(numbers[first]), amount))
                count, first = count - amount, first + 1
        able = numbers[first:][fits[numbers[first:]] >= count]
        if len(able):
            # Of these the one with the least room to spare, then the fullest, then the first.
            tight = able[fits[able] == fits[able].min()]
            return [*chosen, (int(tight[np.argmin(fullness[tight])]), count)]
    if single and fits.any():
        best = int(np.lexsort((np.arange(len(fits)), fullness, rank, -fits))[0])
        return [(best, min(count, int(fits[best])))]
    return chosen
