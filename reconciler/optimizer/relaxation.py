"""The packing as its lower bound sees it: whatever the rules leave open is open here.

The placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is
taken over, nor most of what rules say of zones. Nor is spread over hosts: nodes that fill up evenly each take any number. What
is left out can only make the bound lower, so it stays a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.optimizer.bin_types import Pattern, Purchase, bin_types_for
from reconciler.optimizer.node_rules import conflicts_between, demands_over_share, shares_of_nodes
from reconciler.optimizer.packing import Packing
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.engine.arrays import MINIMUM, RUNNING
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.requirements import ANYWHERE


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Where there are chunks of KeepMinimum every resource comes twice: for all but them, and for all but pods."""

    packing: Packing
    """Of item types that nothing here tells apart."""
    nodes: tuple[Pattern, ...]
    """As the placement has them."""
    free: Amounts
    """Room of all existing nodes together, by resource."""
    fits: Amounts
    """By item type, how many of these alone the existing nodes take."""
    most_nodes: Mapping[int, int]
    """By number of a NodePool that limits nodes, how many new ones it may have."""


def relaxation_of(state: State) -> Relaxation:
    """For all chunks that have a place. Pending pods that no node is made for keep theirs."""
    entries = [entry for entry in state.entries() if not entry.batch.waits]
    placed: Counter[Batch] = Counter()
    for entry in entries:
        placed[entry.batch] += entry.count
    batches = list(placed)
    free, fits = _existing(state, batches, entries)
    packing = _packing_of(state, placed)
    if any(batch.part == MINIMUM for batch in batches):
        packing = _by_part(packing, np.array([batch.part for batch in batches], dtype=np.int64))
    else:
        free = free[: len(state.columns.names)]
    numbers = _numbers_of_alike(packing, fits)
    firsts = np.unique(numbers, return_index=True)[1]
    return Relaxation(
        packing=_merged(packing, numbers, firsts),
        nodes=_nodes(state, entries, dict(zip(batches, numbers.tolist(), strict=True))),
        free=free,
        fits=fits[firsts],
        most_nodes={pool: most for pool in range(len(state.offers)) if (most := _most_nodes(state, pool)) is not None},
    )


def _packing_of(state: State, placed: Mapping[Batch, int]) -> Packing:
    """Of each batch by itself."""
    batches = list(placed)
    rows: dict[int, Mapping[int, Mask]] = {}
    for batch in batches:
        if batch.needs.equivalence_class not in rows:
            rows[batch.needs.equivalence_class] = _rows(state, batch)
    purchases = [Purchase(rows[batch.needs.equivalence_class] if _opens_nodes(batch) else {}) for batch in batches]
    requests = np.array([batch.needs.request for batch in batches], dtype=np.int64)
    counted, limits = shares_of_nodes(batches, demands_over_share(state, placed))
    return Packing(
        counts=np.array(list(placed.values()), dtype=np.int64),
        bin_types=bin_types_for(state, purchases),
        requests=requests.reshape(len(batches), len(state.columns.names)),
        conflicts=conflicts_between(state, batches),
        counted=counted,
        limits=limits,
    )


def _opens_nodes(batch: Batch) -> bool:
    return batch.opens_nodes and not batch.needs.shape.resource_claims


def _rows(state: State, batch: Batch) -> Mapping[int, Mask]:
    """By NodePool what a new node may be bought as, whichever relaxation step is met, in whatever domain."""
    found: dict[int, Mask] = {}
    for step in batch.needs.relaxations:
        compatibility = state.compatibilities.get(batch.needs, step, ANYWHERE)
        for pool in range(len(state.offers)):
            rows = compatibility.rows(pool)
            if rows.any():
                found[pool] = found[pool] | rows if pool in found else rows
    return found


def _by_part(packing: Packing, parts: Amounts) -> Packing:
    """Running pods may be what KeepMinimum keeps, so these two take nothing from each other. parts: of `loads`, by item type."""
    requests = [np.where((parts == part)[:, None], 0, packing.requests) for part in (MINIMUM, RUNNING)]
    capacity = np.tile(packing.bin_types.capacity, 2)
    return replace(
        packing, requests=np.concatenate(requests, axis=1), bin_types=replace(packing.bin_types, capacity=capacity)
    )


def _numbers_of_alike(packing: Packing, fits: Amounts) -> Amounts:
    """By item type the same number for those that nothing tells apart."""
    parts = (packing.requests, packing.bin_types.admits.T, packing.conflicts, packing.counted, fits)
    numbers: dict[tuple[bytes, ...], int] = {}
    found = [
        numbers.setdefault(tuple(part[item].tobytes() for part in parts), len(numbers))
        for item in range(len(packing.counts))
    ]
    return np.array(found, dtype=np.int64)


def _merged(packing: Packing, numbers: Amounts, firsts: Amounts) -> Packing:
    """numbers: as above; firsts: the first item type of each number."""
    return Packing(
        counts=np.bincount(numbers, weights=packing.counts, minlength=len(firsts)).astype(np.int64),
        bin_types=replace(packing.bin_types, admits=packing.bin_types.admits[:, firsts]),
        requests=packing.requests[firsts],
        conflicts=packing.conflicts[np.ix_(firsts, firsts)],
        counted=packing.counted[firsts],
        limits=packing.limits,
    )


def _nodes(state: State, entries: Sequence[JournalEntry], number_of: Mapping[Batch, int]) -> tuple[Pattern, ...]:
    held: dict[int, Counter[int]] = {}
    for entry in entries:
        if entry.bin >= state.base:
            held.setdefault(entry.bin - state.base, Counter())[number_of[entry.batch]] += entry.count
    planned = state.planned
    return tuple(
        Pattern(tuple(sorted(items.items())), (), int(planned.price[index]) / 1e9, planned.of(index).pool)
        for index, items in held.items()
    )


def _existing(state: State, batches: Sequence[Batch], entries: Sequence[JournalEntry]) -> tuple[Amounts, Amounts]:
    """Free room as it was before these chunks came, added up over the bins that can take any of them.

    Twice: for all chunks but those of KeepMinimum, then for all but pods. And how many of each batch there is room for."""
    running = state.resources.running.copy()
    for entry in entries:
        if entry.bin < state.base and entry.batch.part == RUNNING:
            running[entry.bin] -= entry.batch.needs.request * entry.count
    lean = np.maximum(state.bins.room, 0)
    room = np.maximum(state.bins.room - running, 0)
    fits = np.zeros(len(batches), dtype=np.int64)
    useful = np.zeros(state.base, dtype=np.bool_)
    for number, batch in enumerate(batches):
        needs = batch.needs
        tolerated = state.bins.taint_toleration.tolerating(needs.shape.tolerations)
        able = state.bins.usable & state.bins.node_affinity.meeting(needs.terms) & tolerated
        if able.any():
            here = np.where(able, times(lean if batch.part == MINIMUM else room, needs.request), 0)
            fits[number] = min(float(here.astype(np.float64).sum()), PLENTY / 2)
            useful |= here > 0
    return np.concatenate([room[useful].sum(axis=0), lean[useful].sum(axis=0)]), fits


def _most_nodes(state: State, pool: int) -> int | None:
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    if left is None:
        return None
    planned = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return max(left, 0) + planned
