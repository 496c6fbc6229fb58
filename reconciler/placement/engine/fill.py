"""Places chunks on existing bins and on nodes already planned.

Held bins come first, then placeholders, then all others. Of each, as few bins as possible are used, the fullest that fit first, so
that few nodes are protected from disruption.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint import Constraint
from reconciler.placement.engine.grow import grow, growable
from reconciler.placement.engine.host_caps import Task, existing_caps, host_caps
from reconciler.placement.engine.state import State
from reconciler.placement.loops.arrays import COUNTS, NODES
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.nodes.existing import HELD, OTHER
from reconciler.placement.offers.node_templates import Compatibility, NodeTemplate


def fill_existing(state: State, task: Task, count: int) -> int:
    """Places up to `count` chunks on existing bins; returns how many."""
    fits = existing_fits(state, task)
    if fits is None:
        return 0
    chosen = choose(fits, state.bins.rank, state.fullness, count, single=task.single)
    if task.constraints.on_hosts and state.bins.hostnames.sharing:
        chosen = _one_of_a_host(state, chosen)
    for number, amount in chosen:
        state.add_existing(task.batch, number, amount)
    return sum(amount for _, amount in chosen)


def fill_one(state: State, task: Task, number: int, count: int) -> int:
    """Places up to `count` chunks on the existing bin that held them before, even if it takes no others; returns how many."""
    bins = np.array([number], dtype=np.int64)
    bins, most = _within(state.constraints_on_nodes, task.batch, bins)
    if not len(bins):
        return 0
    caps = existing_caps(state, task, bins)
    placed = min(count, int(most[0]) if caps is None else min(int(most[0]), int(caps[0])))
    if placed > 0:
        state.add_existing(task.batch, number, placed)
    return max(0, placed)


def _one_of_a_host(state: State, chosen: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keeps the first of bins that share a hostname. What rules leave for the others is known once it has its chunks."""
    by_host: dict[int | None, tuple[int, int]] = {}
    for number, amount in chosen:
        host = state.bins.hostnames.domains[number]
        by_host.setdefault(-1 - number if host is None else host, (number, amount))
    return list(by_host.values())


def existing_fits(state: State, task: Task) -> Amounts | None:
    """By existing bin, how many chunks it takes; None where the rules on nodes leave none."""
    if not state.base:
        return None
    mask = np.ones(state.base, dtype=np.bool_)
    for key, values in task.where.entries:
        codes, cells = state.bins.table.column(key)
        undecided = np.array([isinstance(cell, tuple) for cell in cells], dtype=np.bool_)
        mask = mask & state.bins.table.allowed(key, values) & ~undecided[codes]
    bins, most = _within(state.constraints_on_nodes, task.batch, np.flatnonzero(mask))
    if not len(bins):
        return None
    caps = existing_caps(state, task, bins)
    fits: Amounts = np.zeros(state.base, dtype=np.int64)
    fits[bins] = most if caps is None else np.minimum(most, caps)
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
        numbers = np.flatnonzero((rank == wanted) & (fits > 0))
        able = numbers[fits[numbers] >= count]
        if count > 0 and len(able):  # the usual case, in which nothing needs to be sorted
            chosen.append((_best_filled(fits, fullness, able), count))
            return chosen
        order = numbers[np.lexsort((numbers, fullness[numbers], -fits[numbers]))]
        falling = -fits[order]
        first = 0
        while count > 0 and first < len(order):
            enough = int(np.searchsorted(falling, -count, side="right"))
            if enough > first:
                # Bins that take the same amount are ordered by fullness, the fullest first.
                position = max(first, int(np.searchsorted(falling, falling[enough - 1], side="left")))
                chosen.append((int(order[position]), count))
                return chosen
            if single:
                break
            amount = -int(falling[first])
            chosen.append((int(order[first]), amount))
            count -= amount
            first += 1
    if single and not chosen and fits.any():
        best = int(np.lexsort((np.arange(len(fits)), fullness, rank, -fits))[0])
        return [(best, min(count, int(fits[best])))]
    return chosen


def _best_filled(fits: Amounts, fullness: Amounts, numbers: Amounts) -> int:
    """Of the bins that take all remaining chunks, the one with the least room to spare, then the fullest, then the first."""
    tight = numbers[fits[numbers] == fits[numbers].min()]
    return int(tight[np.argmin(fullness[tight])])


def fill_planned(state: State, task: Task, relaxation: RelaxationStep, count: int) -> int:
    """Places up to `count` chunks in the free room of planned nodes, without making any of them larger or dearer."""
    planned, batch = state.planned, task.batch
    if not planned.count or not count:
        return 0
    compatibility = state.compatibilities.get(batch.needs, relaxation, task.where)
    return _put_with_minimums(state, task, compatibility, _chosen(state, task, compatibility, count))


def _put_with_minimums(
    state: State, task: Task, compatibility: Compatibility, chosen: Sequence[tuple[int, int]]
) -> int:
    together: dict[int, tuple[list[int], list[int]]] = {}
    placed = 0
    for index, wanted in chosen:
        number = int(compatibility.joined()[state.planned.template[index]])
        template = state.templates.list[number]
        charged = bool(template.offers.minimums) and template.pool in state.limited
        if charged:  # a node with more on it may have to list larger types, even if its cheapest stays the same
            template = growable(state, index, template)
        amount = most_with_minimums(state, template, index, task.batch, wanted)
        if amount and charged:
            grow(state, task.batch, index, template, amount)
            placed += amount
        elif amount:
            indices, amounts = together.setdefault(number, ([], []))
            indices.append(index)
            amounts.append(amount)
            placed += amount
    for number, (indices, amounts) in together.items():
        state.add_planned(task.batch, state.templates.list[number], indices, amounts)
    return placed


def _chosen(state: State, task: Task, compatibility: Compatibility, count: int) -> list[tuple[int, int]]:
    """The planned nodes to use, and how many chunks go to each."""
    planned, batch, caps = state.planned, task.batch, host_caps(state, task)
    found = state.kernel.choose(
        *(planned.arrays, batch.arrays, (state.topology.hosts.table, state.base, caps.rules, caps.more)),
        *(compatibility.joined(), compatibility.bought_as, planned.count, count),
        1 if task.single else planned.count,
    )
    return list(zip(*planned.found[[NODES, COUNTS], :found].tolist(), strict=True))


def most_with_minimums(state: State, template: NodeTemplate, index: int, batch: Batch, amount: int) -> int:
    """The most chunks, up to `amount`, with which the pool's minValues still hold."""
    if not template.offers.minimums:
        return amount
    while amount and template.least(state.planned.used_with(batch, index, amount)) is None:
        amount -= 1
    return amount
