"""The packing as its lower bound sees it: whatever the rules leave open is open here.

The fast placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is
taken over, nor most of what rules say of zones. What is left out can only make the bound lower, so it stays a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.optimizer.conflicts import conflicts_between
from reconciler.optimizer.relaxed_bins import RelaxedBin, existing_bins, new_bins
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.engine.open import by_weight
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.requirements import ANYWHERE

_MOST_CELLS = 8000
"""Item types times bins up to which affinity is looked at: each cell is a row of the program then."""


@dataclass(slots=True)
class RelaxedItemType:
    """Chunks that ask for the same under the same rules. rows: by NodePool, a mask of what a new node for them may be bought
    as; most: of them on one new node, by rules."""

    batch: Batch
    rows: Mapping[int, Mask]
    most: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class AffinityGroup:
    """Item types of which all chunks are in one domain of a label, whichever that is."""

    key: str
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """requests: item types × resources; conflicts: item types × item types, on the diagonal those of which a node takes one;
    most_nodes: by NodePool that limits nodes, how many new ones it may have; number_of: item type by batch."""

    item_types: tuple[RelaxedItemType, ...]
    number_of: Mapping[int, int]
    requests: Amounts
    conflicts: Mask
    affinity_groups: tuple[AffinityGroup, ...]
    bins: tuple[RelaxedBin, ...]
    most_nodes: Mapping[int, int]


def relaxation_of(state: State) -> Relaxation:
    """For all chunks that have a place. Pending pods that no node is made for keep theirs."""
    collected = _Collected(state)
    for entry in state.entries():
        if not entry.batch.waits:
            collected.add(entry.batch, entry.count)
    item_types = collected.item_types
    requests = np.array([item.batch.needs.request for item in item_types], dtype=np.int64)
    requests = requests.reshape(len(item_types), len(state.columns.names))
    rows = [item.rows for item in item_types]
    batches = [item.batch for item in item_types]
    pools = _pools(state, item_types)
    groups = _affinity_groups(state, item_types)
    keys = sorted({group.key for group in groups})
    bins = (*new_bins(state, rows, requests, pools, keys), *existing_bins(state, batches, keys))
    if groups and len(item_types) * len(bins) > _MOST_CELLS:
        groups = ()
        bins = (*new_bins(state, rows, requests, pools, ()), *existing_bins(state, batches, ()))
    return Relaxation(
        item_types=tuple(item_types),
        number_of=collected.of_batch,
        requests=requests,
        conflicts=conflicts_between(state, batches),
        affinity_groups=groups if len({tuple(sorted(item.domains.items())) for item in bins}) > 1 else (),
        bins=bins,
        most_nodes={pool: most for pool in pools if (most := _most_nodes(state, pool)) is not None},
    )


@dataclass(slots=True)
class _Collected:
    """Item types as they come up, numbered by what tells them apart."""

    state: State
    item_types: list[RelaxedItemType] = field(default_factory=list)
    of_batch: dict[int, int] = field(default_factory=dict)
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _rows: dict[int, dict[int, Mask]] = field(default_factory=dict)

    def add(self, batch: Batch, count: int) -> None:
        if batch.number not in self.of_batch:
            self.of_batch[batch.number] = self._number(batch)
        self.item_types[self.of_batch[batch.number]].count += count

    def _number(self, batch: Batch) -> int:
        needs, per_node = batch.needs, self.state.per_node
        opens_nodes = batch.opens_nodes and not needs.shape.resource_claims
        limited = None if per_node is None or batch.pods else batch.demand
        key = (
            *(
                needs.equivalence_class,
                needs.request.tobytes(),
                needs.shape.host_ports,
                batch.part,
                opens_nodes,
                limited,
            ),
            bool(batch.preferences),
        )
        if key not in self._numbers:
            if needs.equivalence_class not in self._rows:
                self._rows[needs.equivalence_class] = _rows(self.state, batch)
            self._numbers[key] = len(self.item_types)
            most = PLENTY if per_node is None or batch.pods else per_node
            for rule in self.state.constraints(batch).host_spread:
                if rule.counts_itself:  # beside a new node there may always be an empty host
                    most = min(most, rule.max_skew)
            rows = self._rows[needs.equivalence_class] if opens_nodes else {}
            self.item_types.append(RelaxedItemType(batch, rows, most))
        return self._numbers[key]


def _rows(state: State, batch: Batch) -> dict[int, Mask]:
    """By NodePool, whichever relaxation step is met, in whatever domain."""
    found: dict[int, Mask] = {}
    for step in batch.needs.relaxations:
        compatibility = state.compatibilities.get(batch.needs, step, ANYWHERE)
        for pool in range(len(state.offers)):
            rows = compatibility.rows(pool) & state.offers[pool].priced
            if rows.any():
                found[pool] = found[pool] | rows if pool in found else rows
    return found


def _affinity_groups(state: State, item_types: Sequence[RelaxedItemType]) -> tuple[AffinityGroup, ...]:
    """Where all that count have the rule themselves, and nothing that runs counts: else the second chunk may be elsewhere than
    the first."""
    counters = state.topology.counters
    placed: Counter[int] = Counter()
    for entry in state.entries():
        if not entry.batch.waits:
            for position, _ in entry.counted_in.labels:
                placed[position] += entry.count
    wanting: dict[int, set[int]] = {}
    counting: dict[int, set[int]] = {}
    for number, item in enumerate(item_types):
        for rule in state.constraints(item.batch).affinity:
            wanting.setdefault(rule.counter, set()).add(number)
        for position in state.topology.counts_of(item.batch.needs):
            counting.setdefault(position, set()).add(number)
    found = {
        AffinityGroup(counters[position].counted.key, frozenset(members)): None
        for position, members in wanting.items()
        if counters[position].total == placed[position] and counting.get(position, set()) <= members
        if counting.get(position)
    }
    return tuple(found)


def _pools(state: State, item_types: Sequence[RelaxedItemType]) -> list[int]:
    """NodePools that nodes may be made of: for some chunk one of the heaviest that can make it a node. Lighter ones count where
    it is not sure that a heavier can."""
    weights = by_weight(state)
    found: set[int] = set()
    seen: set[tuple[object, ...]] = set()
    for item in item_types:
        if not item.rows:
            continue
        batch = item.batch
        unsure = bool(batch.preferences or state.constraints(batch).keys or batch.needs.shape.host_ports)
        key = (batch.needs.equivalence_class, batch.needs.request.tobytes(), unsure)
        if key not in seen:
            seen.add(key)
            for step in batch.needs.relaxations:
                found |= _pools_for(state, batch, step, weights, unsure=unsure)
    return sorted(found)


def _pools_for(
    state: State, batch: Batch, step: RelaxationStep, weights: Sequence[tuple[int, ...]], *, unsure: bool
) -> set[int]:
    compatibility = state.compatibilities.get(batch.needs, step, ANYWHERE)
    found: set[int] = set()
    for pools in weights:
        able = [
            pool
            for pool in pools
            if (compatibility.rows(pool) & state.offers[pool].rows_holding(batch.needs.request)).any()
        ]
        found |= set(able)
        if not unsure and any(pool not in state.limited and not state.offers[pool].minimums for pool in able):
            break
    return found


def _most_nodes(state: State, pool: int) -> int | None:
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    if left is None:
        return None
    planned = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return max(left, 0) + planned
