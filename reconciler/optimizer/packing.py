"""Bin packing with conflicts, bin types that differ in price, and limits on what is counted on a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reconciler.optimizer.bin_types import BinTypes
from reconciler.optimizer.solver import Floats
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask


@dataclass(frozen=True)
class Packing:
    """What is to be packed, and into what. What is counted on a node is like another resource of which each bin type has as much.

    counts: chunks by item type; requests: item types × resources; conflicts, counted and limits: see `node_rules`.
    """

    counts: Amounts
    bin_types: BinTypes
    requests: Amounts
    conflicts: Mask
    counted: Amounts
    limits: Amounts

    @cached_property
    def sizes(self) -> Amounts:
        """Item types × resources and limits: what one chunk takes of them."""
        return np.concatenate([self.requests, self.counted], axis=1)

    @cached_property
    def room(self) -> Amounts:
        """Bin types × resources and limits: what a node has of them."""
        limits = np.broadcast_to(self.limits, (len(self.bin_types), len(self.limits)))
        return np.concatenate([self.bin_types.capacity, limits], axis=1)

    @cached_property
    def most_per_node(self) -> Amounts:
        """By item type, as far as rules go."""
        most = np.where(self.conflicts.diagonal(), 1, PLENTY)
        if len(self.limits):
            most = np.minimum(most, np.where(self.counted > 0, self.limits, PLENTY).min(axis=1))
        return np.asarray(most, dtype=np.int64)

    @cached_property
    def most_alone(self) -> Amounts:
        """Bin types × item types: how many of these a node takes that has nothing else."""
        fits = np.array([_fits(room, self.sizes) for room in self.room], dtype=np.int64)
        fits = fits.reshape(len(self.bin_types), len(self.counts))
        return np.where(self.bin_types.admits, np.minimum(np.minimum(self.most_per_node, self.counts), fits), 0)

    def shares(self, number: int) -> list[Floats]:
        """What one chunk takes of such a node, by item type, in each way in which all together take no more than 1."""
        return [*(self.sizes / np.maximum(self.room[number], 1)).T, *self._cliques]

    @cached_property
    def shares_say_all(self) -> bool:
        """Whether no conflict is beyond what `shares` says."""
        excluded = sum((np.outer(clique, clique) for clique in self._cliques), np.zeros(self.conflicts.shape))
        return not bool((self.conflicts & (excluded == 0)).any())

    @cached_property
    def _cliques(self) -> list[Floats]:
        """Item types of which one node takes one chunk in all; 1 for each of those."""
        groups: dict[bytes, list[int]] = {}
        for number in np.flatnonzero(self.conflicts.diagonal()).tolist():
            groups.setdefault(self.conflicts[number].tobytes(), []).append(number)
        every = np.arange(len(self.conflicts))
        cliques = [members for members in groups.values() if self.conflicts[np.ix_(members, members)].all()]
        return [np.isin(every, members).astype(np.float64) for members in cliques]


def requests_of(state: State, batches: Sequence[Batch]) -> Amounts:
    """Batches × resources."""
    return np.array([batch.needs.request for batch in batches], dtype=np.int64).reshape(-1, len(state.columns.names))


def _fits(room: Amounts, sizes: Amounts) -> Amounts:
    fits = np.where(sizes > 0, room // np.maximum(sizes, 1), PLENTY).min(axis=1, initial=PLENTY)
    return np.asarray(np.maximum(fits, 0), dtype=np.int64)
