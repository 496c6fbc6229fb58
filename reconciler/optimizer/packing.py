"""Bin packing with conflicts, bin types that differ in price, and limits on what is counted on a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from reconciler.model.refs import by_key
from reconciler.optimizer.solver import Floats
from reconciler.placement.arrays import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.node_rules import ports_clash
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import Mask


@dataclass(frozen=True, slots=True)
class NodeRules:
    """What is counted on a node is like another resource of which each node has as much.

    sizes: batches × resources and limits, what one chunk takes of them. limits: most that is counted on a node. conflicts: batches ×
    batches, symmetric: what a node does not take together, and on the diagonal those of which it takes one chunk.
    """

    sizes: Amounts
    limits: Amounts
    conflicts: Mask

    @classmethod
    def of(cls, state: State, batches: Sequence[Batch], *, spread: bool) -> NodeRules:
        """spread: spread over hosts counts too."""
        requests = np.array([batch.needs.request for batch in batches], dtype=np.int64)
        counted, limits = _counted(state, batches, spread=spread)
        sizes = np.concatenate([requests.reshape(len(batches), len(state.columns.names)), counted], axis=1)
        return cls(sizes, limits, _conflicts(state, batches))

    def only(self, batches: Sequence[int]) -> NodeRules:
        """The rules of these batches, in this order."""
        return replace(self, sizes=self.sizes[batches], conflicts=self.conflicts[np.ix_(batches, batches)])

    def alike(self, purchases: Iterable[Purchase], *told: Sequence[object]) -> tuple[Amounts, list[int]]:
        """The same number for batches that nothing tells apart: these rules, what they may be bought as, what is told of each. And the
        first batch of each number, in order."""
        rows = ([row.tobytes() for row in rows] for rows in (purchases, self.sizes, self.conflicts))
        known: dict[tuple[object, ...], int] = {}
        keys = zip(*rows, *told, strict=True)
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        return numbers, np.unique(numbers, return_index=True)[1].tolist()


def _conflicts(state: State, batches: Sequence[Batch]) -> Mask:
    """By anti-affinity on the hostname, or by host ports."""
    first_of: dict[tuple[int, bool], int] = {}
    classes = [
        first_of.setdefault((batch.needs.equivalence_class, batch.keeps_minimum), number)
        for number, batch in enumerate(batches)
    ]
    counted = {number: frozenset(state.topology.counts_of(batches[number].needs)) for number in first_of.values()}
    conflicts = np.zeros((len(batches), len(batches)), dtype=np.bool_)
    for number in first_of.values():
        for rule in state.constraints(batches[number]).on_hosts:
            if rule.apart:
                conflicts[number] |= np.array([rule.counter in counted[other] for other in classes], dtype=np.bool_)
    conflicts = conflicts[classes]
    for number, batch in enumerate(batches):
        ports = batch.needs.shape.host_ports
        if ports:
            conflicts[number] |= np.array([ports_clash(ports, other.needs.shape.host_ports) for other in batches])
    return np.asarray(conflicts | conflicts.T, dtype=np.bool_)


def _counted(state: State, batches: Sequence[Batch], *, spread: bool) -> tuple[Amounts, Amounts]:
    """With spread, what a node takes beside an empty host of chunks that bring a spread constraint on hosts and count under it. Those that bring the
    same constraint for other nodes too, or as KeepMinimum, are under one limit."""
    found: list[tuple[int, object, int]] = []
    for number, batch in enumerate(batches):
        for rule in state.constraints(batch).host_spread if spread else ():
            if rule.counts_itself:
                counted = state.topology.counters[rule.counter].counted.anywhere
                found.append((number, (counted, rule.bound(least=0), rule.min_domains), rule.bound(least=0)))
    most = {key: limit for _, key, limit in found}
    columns = {key: column for column, key in enumerate(most)}
    counts = np.zeros((len(batches), len(most)), dtype=np.int64)
    for number, key, _ in found:
        counts[number, columns[key]] = 1
    return counts, np.array(list(most.values()), dtype=np.int64)


Items: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers of item types and how many chunks of each, by number."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one node holds: a column of the master problem. price: USD an hour; pool: number of its NodePool."""

    items: Items
    price: float
    pool: int


@dataclass(frozen=True, slots=True)
class BinTypes:
    """One entry each. capacity: bin types × resources, after daemons. prices: billionths of a USD an hour. admits: bin types ×
    item types, which of these may be on such a node. pools: numbers of NodePools."""

    capacity: Amounts
    prices: Amounts
    admits: Mask
    pools: Amounts

    def __len__(self) -> int:
        return len(self.prices)

    def pattern(self, number: int, items: Items) -> Pattern:
        return Pattern(items, int(self.prices[number]) / 1e9, int(self.pools[number]))

    def filled(self, number: int, items: Amounts, counts: Amounts) -> Pattern:
        """A node of this type with so many chunks of these item types."""
        held = np.flatnonzero(counts)
        return self.pattern(number, tuple(zip(items[held].tolist(), counts[held].tolist(), strict=True)))


Purchase: TypeAlias = Mask
"""By row of the catalogs of all NodePools, whether a new node for an item type may be bought as that."""


def planned_pattern(state: State, index: int, items: Mapping[int, int]) -> Pattern:
    """A planned node as a pattern. items: how many chunks of each item type are on it."""
    planned = state.planned
    return Pattern(tuple(sorted(items.items())), int(planned.price[index]) / 1e9, planned.of(index).pool)


def bin_types_for(state: State, purchases: Sequence[Purchase]) -> BinTypes:
    """All that item types can be together on, without those that are no better than another one in any respect.

    purchases: by item type.
    """
    pools = np.repeat(np.arange(len(state.offers)), [len(item.rows) for item in state.offers])
    types = [item.offerings.types_of + base for item, base in zip(state.offers, state.templates.type_base, strict=True)]
    priced = np.concatenate([item.priced for item in state.offers])
    admits = np.array(purchases, dtype=np.bool_).reshape(len(purchases), len(pools)) & priced
    rows = np.flatnonzero(admits.any(axis=0))
    prices = np.concatenate([item.prices for item in state.offers])[rows]
    capacity, admits, pools = state.templates.room[np.concatenate(types)[rows]], admits[:, rows].T, pools[rows]
    kept = _undominated(capacity, prices, admits, pools)
    return BinTypes(capacity[kept], prices[kept], admits[kept], pools[kept])


def _undominated(capacity: Amounts, prices: Amounts, admits: Mask, pools: Amounts) -> list[int]:
    """Numbers of bin types that no cheaper one of their NodePool replaces; of two equals the first stays. Another NodePool may be limited."""
    kept: list[int] = []
    for number in np.argsort(prices, kind="stable").tolist():
        as_large = (pools[kept] == pools[number]) & (capacity[kept] >= capacity[number]).all(axis=1)
        if not (as_large & (admits[kept] >= admits[number]).all(axis=1)).any():
            kept.append(number)
    return sorted(kept)


@dataclass(frozen=True)
class Packing:
    """What is to be packed, and into what. counts: chunks by item type; rules: of item types."""

    counts: Amounts
    bin_types: BinTypes
    rules: NodeRules

    @cached_property
    def room(self) -> Amounts:
        """Bin types × resources and limits: what a node has of them."""
        limits = np.broadcast_to(self.rules.limits, (len(self.bin_types), len(self.rules.limits)))
        return np.concatenate([self.bin_types.capacity, limits], axis=1)

    @cached_property
    def most_alone(self) -> Amounts:
        """Bin types × item types: how many of these a node takes that has nothing else."""
        most = np.where(self.rules.conflicts.diagonal(), np.minimum(self.counts, 1), self.counts)
        fits = np.array([times(self.room, size) for size in self.rules.sizes], dtype=np.int64)
        return np.where(self.bin_types.admits, np.minimum(most, fits.T.reshape(self.bin_types.admits.shape)), 0)

    def cheapest(self, items: Items) -> Pattern:
        """The cheapest node for them."""
        numbers, counts = np.array(items, dtype=np.int64).T
        able = (self.room >= counts @ self.rules.sizes[numbers]).all(axis=1) & self.bin_types.admits[:, numbers].all(
            axis=1
        )
        chosen = np.argmin(np.where(able, self.bin_types.prices, PLENTY))
        return self.bin_types.pattern(int(chosen), items)

    def shares(self, number: int) -> Floats:
        """What one chunk takes of such a node: item types × ways in each of which all together take no more than 1."""
        return np.concatenate([self.rules.sizes / np.maximum(self.room[number], 1), self._cliques.T], axis=1)

    @cached_property
    def shares_say_all(self) -> bool:
        """Whether no conflict is beyond what `shares` says."""
        return not bool((self.rules.conflicts & (self._cliques.T @ self._cliques == 0)).any())

    @cached_property
    def _cliques(self) -> Floats:
        """Groups × item types: 1 for those of which one node takes one chunk in all."""
        conflicts = self.rules.conflicts
        own = np.flatnonzero(conflicts.diagonal()).tolist()
        groups = by_key((conflicts[number].tobytes(), number) for number in own)
        cliques = [members for members in groups.values() if conflicts[np.ix_(members, members)].all()]
        found = np.zeros((len(cliques), len(conflicts)))
        for row, members in zip(found, cliques, strict=True):
            row[members] = 1.0
        return found
