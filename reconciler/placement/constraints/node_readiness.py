"""Keeps chunks that must fit now (`check-capacity` requests) off nodes that are still coming up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint import Stateless


class NodeReadiness(Stateless):
    """names: of existing bins; arriving: whether each is not up yet."""

    def __init__(self, names: Sequence[str], arriving: Sequence[bool]) -> None:
        self._names = names
        self._most: Amounts = np.array([0 if late else PLENTY for late in arriving], dtype=np.int64)

    def concerns(self, batch: Batch) -> bool:
        return batch.only_ready

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        del batch
        return self._most[bins]

    def cause(self, batch: Batch, number: int) -> str:
        del batch, number
        return "node on its way"

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        del batch
        others = len(bins) - 1
        if not others:
            return f"{self._names[bins[0]]} is not ready yet"
        return f"{self._names[bins[0]]} and {others:,} {'other' if others == 1 else 'others'} are not ready yet"
