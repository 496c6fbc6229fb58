"""Bin packing with conflicts, bin types that differ in price, and limits on what is counted on a node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reconciler.optimizer.bin_types import BinTypes, Items, Pattern
from reconciler.optimizer.node_rules import NodeRules
from reconciler.optimizer.solver import Floats
from reconciler.placement.amounts import PLENTY, Amounts, times


@dataclass(frozen=True)
class Packing:
    """What is to be packed, and into what. counts: chunks by item type; rules: of item types."""

    counts: Amounts
    bin_types: BinTypes
    rules: NodeRules

    @property
    def pools(self) -> int:
        """How many NodePools there may be."""
        return int(self.bin_types.pools.max(initial=-1)) + 1

    @cached_property
    def room(self) -> Amounts:
        """Bin types × resources and limits: what a node has of them."""
        limits = np.broadcast_to(self.rules.limits, (len(self.bin_types), len(self.rules.limits)))
        return np.concatenate([self.bin_types.capacity, limits], axis=1)

    @cached_property
    def most_per_node(self) -> Amounts:
        """By item type, as far as rules go."""
        limits = self.rules.limits
        counted = self.rules.sizes[:, self.bin_types.capacity.shape[1] :] > 0
        most = np.where(counted, limits, PLENTY).min(axis=1, initial=PLENTY)
        return np.asarray(np.where(self.rules.conflicts.diagonal(), 1, most), dtype=np.int64)

    @cached_property
    def most_alone(self) -> Amounts:
        """Bin types × item types: how many of these a node takes that has nothing else."""
        most = np.minimum(self.most_per_node, self.counts)
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
        groups: dict[bytes, list[int]] = {}
        for number in np.flatnonzero(conflicts.diagonal()).tolist():
            groups.setdefault(conflicts[number].tobytes(), []).append(number)
        cliques = [members for members in groups.values() if conflicts[np.ix_(members, members)].all()]
        found = np.zeros((len(cliques), len(conflicts)))
        for row, members in zip(found, cliques, strict=True):
            row[members] = 1.0
        return found
