"""The packing as its lower bound sees it: whatever the rules leave open is open here.

The placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is taken over, nor
what rules say of zones, but for spread where prices differ by zone (`spread_rows.py`). Nor is spread over hosts: nodes that fill up
evenly each take any number. Running pods may be what KeepMinimum keeps: beside such chunks they take nothing. What is left out can only
make the bound lower, so it stays a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.optimizer.bin_types import Pattern, Purchase, bin_types_for
from reconciler.optimizer.master import Rows
from reconciler.optimizer.node_rules import conflicts_between, demands_over_share, shares_of_nodes
from reconciler.optimizer.packing import Packing
from reconciler.optimizer.spread_rows import SpreadRows, spread_rows
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.engine.arrays import MINIMUM, RUNNING
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.requirements import ANYWHERE


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What is to be placed at the least price, and on what."""

    packing: Packing
    """Of item types that nothing here tells apart. Where spread rows tell domains apart, these chunks have one for each domain."""
    demand: Rows
    """What is to be placed, and what spread asks of domains."""
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
    keeps_minimum = any(entry.batch.part == MINIMUM for entry in entries)
    entries = [entry for entry in entries if not keeps_minimum or entry.batch.part != RUNNING]
    placed: Counter[Batch] = Counter()
    for entry in entries:
        placed[entry.batch] += entry.count
    batches = list(placed)
    spread = spread_rows(state, placed, entries)
    free, fits = _existing(state, batches, 0 if keeps_minimum else _running(state, entries))
    parts = _Parts(state, batches, spread)
    packing = _packing_of(state, placed, parts)
    fits = np.where(parts.anywhere, fits[parts.owners], 0)
    numbers, groups = _numbers_of_alike(packing, fits, parts)
    firsts = np.unique(numbers, return_index=True)[1]
    merged = _merged(packing, numbers, firsts)
    counts = np.bincount(groups, weights=list(placed.values()))
    places = [
        np.concatenate([np.arange(len(counts)) == groups[parts.owners[item]], parts.rows[item]]) for item in firsts
    ]
    return Relaxation(
        packing=merged,
        demand=Rows(
            least=np.concatenate([counts, spread.least]),
            of_items=np.array(places, dtype=np.float64).reshape(len(firsts), len(counts) + len(spread.least)),
            slack=np.concatenate([np.zeros(len(counts)), spread.fewest]),
        ),
        nodes=_nodes(state, entries, {key: int(numbers[item]) for key, item in parts.items.items()}, spread),
        free=free,
        fits=fits[firsts],
        most_nodes={pool: most for pool in range(len(state.offers)) if (most := _most_nodes(state, pool)) is not None},
    )


class _Parts:
    """One item type for each batch, or one for each domain and one for anywhere else. By item type:

    owners: the number of its batch; anywhere: whether it may be on existing nodes; rows: what a chunk adds to spread rows; alike:
    domain and weights, by which it is told apart. items: by batch and domain.
    """

    def __init__(self, state: State, batches: Sequence[Batch], spread: SpreadRows) -> None:
        weights = [spread.weights.get(batch, (0, 0.0)) for batch in batches]
        places = [range(-1, len(spread.domains) if any(weight) else 0) for weight in weights]
        told = [(number, place) for number, some in enumerate(places) for place in some]
        masks = [spread.masks(offers) for offers in state.offers] if spread.domains else []
        self.owners = np.array([number for number, _ in told], dtype=np.int64)
        self.anywhere = np.array([place < 0 for _, place in told], dtype=np.bool_)
        self.rows = [spread.row(weights[number], place) for number, place in told]
        self.items = {(batches[number], place): item for item, (number, place) in enumerate(told)}
        self.alike = [(place, weights[number]) for number, place in told]
        self._masks = [
            [of_pool[place] for of_pool in masks] if len(places[number]) > 1 else [] for number, place in told
        ]

    def purchases(self, rows: Sequence[Mapping[int, Mask]]) -> list[Purchase]:
        """rows: by batch and NodePool."""
        return [
            Purchase({pool: mask & masks[pool] for pool, mask in rows[owner].items()} if masks else rows[owner])
            for owner, masks in zip(self.owners.tolist(), self._masks, strict=True)
        ]


def _packing_of(state: State, placed: Mapping[Batch, int], parts: _Parts) -> Packing:
    """Of each batch by itself."""
    batches, owners = list(placed), parts.owners
    rows: dict[int, Mapping[int, Mask]] = {}
    for batch in batches:
        if batch.needs.equivalence_class not in rows:
            rows[batch.needs.equivalence_class] = _rows(state, batch)
    of_batches = [rows[batch.needs.equivalence_class] if _opens_nodes(batch) else {} for batch in batches]
    requests = np.array([batch.needs.request for batch in batches], dtype=np.int64)
    counted, limits = shares_of_nodes(batches, demands_over_share(state, placed))
    return Packing(
        counts=np.array(list(placed.values()), dtype=np.int64)[owners],
        bin_types=bin_types_for(state, parts.purchases(of_batches)),
        requests=requests.reshape(len(batches), len(state.columns.names))[owners],
        conflicts=conflicts_between(state, batches)[np.ix_(owners, owners)],
        counted=counted[owners],
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


def _numbers_of_alike(packing: Packing, fits: Amounts, parts: _Parts) -> tuple[Amounts, Amounts]:
    """By item type, and by batch, the same number for those that nothing tells apart."""
    alike = (packing.requests, packing.bin_types.admits.T, packing.conflicts, packing.counted, fits)
    of_batches: dict[int, list[object]] = {}
    for item, owner in enumerate(parts.owners.tolist()):
        of_batches.setdefault(owner, []).append((parts.alike[item], *(part[item].tobytes() for part in alike)))
    known: dict[tuple[object, ...], int] = {}
    groups = [known.setdefault(tuple(of_batch), len(known)) for of_batch in of_batches.values()]
    numbers: dict[tuple[int, int], int] = {}
    found = [
        numbers.setdefault((groups[owner], parts.alike[item][0]), len(numbers))
        for item, owner in enumerate(parts.owners.tolist())
    ]
    return np.array(found, dtype=np.int64), np.array(groups, dtype=np.int64)


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


def _nodes(
    state: State, entries: Sequence[JournalEntry], number_of: Mapping[tuple[Batch, int], int], spread: SpreadRows
) -> tuple[Pattern, ...]:
    held: dict[int, Counter[int]] = {}
    places = {domain: place for place, domain in enumerate(spread.domains)}
    for entry in entries:
        if entry.bin >= state.base:
            domain = state.decided(entry.bin, spread.key) if spread.domains else None
            place = -1 if domain is None else places.get(domain, -1)
            number = number_of.get((entry.batch, place), number_of[entry.batch, -1])
            held.setdefault(entry.bin - state.base, Counter())[number] += entry.count
    planned = state.planned
    return tuple(
        Pattern(tuple(sorted(items.items())), int(planned.price[index]) / 1e9, planned.of(index).pool)
        for index, items in held.items()
    )


def _running(state: State, entries: Sequence[JournalEntry]) -> Amounts:
    """What running pods take of each existing bin, without those of these entries."""
    running = state.resources.running.copy()
    for entry in entries:
        if entry.bin < state.base and entry.batch.part == RUNNING:
            running[entry.bin] -= entry.batch.needs.request * entry.count
    return running


def _existing(state: State, batches: Sequence[Batch], running: Amounts | int) -> tuple[Amounts, Amounts]:
    """Free room as it was before these chunks came, added up over the bins that can take any of them. And how many of each batch
    there is room for."""
    room = np.maximum(state.bins.room - running, 0)
    fits = np.zeros(len(batches), dtype=np.int64)
    useful = np.zeros(state.base, dtype=np.bool_)
    for number, batch in enumerate(batches):
        needs = batch.needs
        tolerated = state.bins.taint_toleration.tolerating(needs.shape.tolerations)
        able = state.bins.usable & state.bins.node_affinity.meeting(needs.terms) & tolerated
        if able.any():
            here = np.where(able, times(room, needs.request), 0)
            fits[number] = min(float(here.astype(np.float64).sum()), PLENTY / 2)
            useful |= here > 0
    return room[useful].sum(axis=0), fits


def _most_nodes(state: State, pool: int) -> int | None:
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    if left is None:
        return None
    planned = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return max(left, 0) + planned
