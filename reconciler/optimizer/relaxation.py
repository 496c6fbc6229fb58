"""The packing as its lower bound sees it: whatever the rules leave open is open here.

The fast placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is
taken over, nor most of what rules say of zones. What is left out can only make the bound lower, so it stays a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.bin_types import Purchase, bin_types_for
from reconciler.optimizer.conflicts import conflicts_between
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.engine.arrays import MINIMUM, RUNNING
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.requirements import ANYWHERE


@dataclass(frozen=True, slots=True)
class RelaxedBin:
    """A new node of one type and price, or the free room of all existing ones together.

    room: by resource, for all chunks but those of `KeepMinimum`; lean: by resource, for all but pods, without what runs; price:
    billionths of a USD an hour; fits: by item type, how many alone; pool: of a new node, else -1.
    """

    room: Amounts
    lean: Amounts
    price: int
    fits: Amounts
    pool: int

    @property
    def is_new(self) -> bool:
        return self.pool >= 0


@dataclass(frozen=True, slots=True)
class Relaxation:
    """batches: one of each item type; counts: chunks by item type; requests: item types × resources; conflicts: item types × item
    types, on the diagonal those of which a node takes one; most_nodes: by NodePool that limits nodes, how many new ones it may have."""

    batches: tuple[Batch, ...]
    counts: Amounts
    requests: Amounts
    conflicts: Mask
    bins: tuple[RelaxedBin, ...]
    most_nodes: Mapping[int, int]


def relaxation_of(state: State) -> Relaxation:
    """For all chunks that have a place. Pending pods that no node is made for keep theirs."""
    placed: Counter[Batch] = Counter()
    for entry in state.entries():
        if not entry.batch.waits:
            placed[entry.batch] += entry.count
    alike: dict[tuple[object, ...], list[Batch]] = {}
    for batch in placed:
        alike.setdefault(_item_type(state, batch), []).append(batch)
    batches = tuple(members[0] for members in alike.values())
    counts = np.array([sum(placed[batch] for batch in members) for members in alike.values()], dtype=np.int64)
    requests = np.array([batch.needs.request for batch in batches], dtype=np.int64)
    requests = requests.reshape(len(batches), len(state.columns.names))
    return Relaxation(
        *(batches, counts, requests, conflicts_between(state, batches)),
        bins=(*_new_bins(state, batches, requests), *_existing_bins(state, batches)),
        most_nodes={pool: most for pool in range(len(state.offers)) if (most := _most_nodes(state, pool)) is not None},
    )


def _item_type(state: State, batch: Batch) -> tuple[object, ...]:
    """What tells item types apart."""
    needs = batch.needs
    limited = None if state.per_node is None or batch.pods else batch.demand
    asked = (needs.equivalence_class, needs.request.tobytes(), needs.shape.host_ports)
    return (*asked, batch.part, _opens_nodes(batch), limited, bool(batch.preferences))


def _opens_nodes(batch: Batch) -> bool:
    return batch.opens_nodes and not batch.needs.shape.resource_claims


def _new_bins(state: State, batches: Sequence[Batch], requests: Amounts) -> Sequence[RelaxedBin]:
    rows: dict[int, Mapping[int, Mask]] = {}
    for batch in batches:
        if batch.needs.equivalence_class not in rows:
            rows[batch.needs.equivalence_class] = _rows(state, batch)
    purchases = [Purchase(rows[batch.needs.equivalence_class] if _opens_nodes(batch) else {}) for batch in batches]
    most = np.array([_most_on_new(state, batch) for batch in batches], dtype=np.int64)
    types = bin_types_for(state, purchases)
    return [
        RelaxedBin(room, room, price, np.where(admits, np.minimum(_fits(room, requests), most), 0), pool)
        for room, price, admits, pool in zip(
            types.capacity, types.prices.tolist(), types.admits, types.pools.tolist(), strict=True
        )
    ]


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


def _most_on_new(state: State, batch: Batch) -> int:
    """As far as rules go. Beside a new node there may always be an empty host."""
    most = PLENTY if state.per_node is None or batch.pods else state.per_node
    return min([most, *(rule.bound(0) for rule in state.constraints(batch).host_spread if rule.counts_itself)])


def _fits(room: Amounts, requests: Amounts) -> Amounts:
    parts = np.where(requests > 0, np.maximum(room, 0) // np.maximum(requests, 1), PLENTY)
    return np.asarray(parts.min(axis=1, initial=PLENTY), dtype=np.int64)


def _existing_bins(state: State, batches: Sequence[Batch]) -> Sequence[RelaxedBin]:
    """Free room as it was before these chunks came, added up over the bins that can take any of them."""
    if not state.base:
        return ()
    running = state.resources.running.copy()
    for entry in state.entries():
        if entry.bin < state.base and entry.batch.part == RUNNING and not entry.batch.waits:
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
    return (RelaxedBin(room[useful].sum(axis=0), lean[useful].sum(axis=0), 0, fits, -1),)


def _most_nodes(state: State, pool: int) -> int | None:
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    if left is None:
        return None
    planned = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return max(left, 0) + planned
