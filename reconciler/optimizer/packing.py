"""Bin packing with conflicts, bin types that differ in price, and limits on what is counted on a node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reconciler.optimizer.bin_types import BinTypes
from reconciler.placement.amounts import PLENTY, Amounts
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
