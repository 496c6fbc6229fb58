"""Resource lists as rows of integers: one column for each resource that any chunk asks for. Used by bins, candidates and pack."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reconciler.model.quantity import CPU, MEMORY, PODS, Resources
from reconciler.placement.label_table import Amounts

LARGEST = 2**52
"""Amounts are cut off here (4 PiB), so that sums of thousands stay exact in 64 bits."""
PLENTY = 2**62
"""Stands for "no limit" where counts are compared."""


class ResourceColumns:
    """cpu, memory and pods always, then what else is asked for, by name."""

    def __init__(self, asked: Iterable[Resources]) -> None:
        names = {name for resources in asked for name in resources.names()} - {CPU, MEMORY, PODS}
        self.names = (CPU, MEMORY, PODS, *sorted(names))
        self._vectors: dict[Resources, Amounts] = {}

    def vector(self, resources: Resources) -> Amounts:
        """Do not change what comes back: it is shared."""
        vector = self._vectors.get(resources)
        if vector is None:
            amounts = dict(resources.amounts)
            cut = [max(-LARGEST, min(LARGEST, amounts.get(name, 0))) for name in self.names]
            vector = np.array(cut, dtype=np.int64)
            self._vectors[resources] = vector
        return vector

    def request(self, resources: Resources) -> Amounts:
        """As `vector`, and as shared; a request beyond what is counted fits nowhere."""
        vector = self.vector(resources)
        return np.where(vector >= LARGEST, PLENTY // 2, vector) if LARGEST in vector.tolist() else vector

    def matrix(self, lists: Iterable[Resources]) -> Amounts:
        rows = [self.vector(resources) for resources in lists]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names))

    def resources(self, vector: Amounts) -> Resources:
        return Resources.of(zip(self.names, vector.tolist(), strict=True))


def times(room: Amounts, request: Amounts) -> Amounts:
    """How many times `request` fits into each row of `room`; shape (rows, resources) → (rows,), never below 0."""
    asked = request > 0
    if not asked.any():
        return np.full(room.shape[:-1], PLENTY, dtype=np.int64)
    return np.asarray(np.maximum((room[..., asked] // request[asked]).min(axis=-1), 0), dtype=np.int64)
