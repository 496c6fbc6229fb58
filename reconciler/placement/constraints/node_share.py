"""The setting `placement.chunksPerNode`: the most chunks of one demand on a node, which bounds what the loss of a node costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.model.refs import ObjectRef
from reconciler.placement.amounts import Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint import Constraint


class NodeShare(Constraint):
    """names: of existing bins. limit: the most chunks of one demand on a node, None for no limit."""

    named = "share of a node"
    reserves = True

    def __init__(self, names: Sequence[str], limit: int | None) -> None:
        self._names = names
        self.limit = limit
        self._held: dict[ObjectRef, dict[int, int]] = {}
        """How many chunks, by demand and bin number."""

    def concerns(self, batch: Batch) -> bool:
        del batch
        return self.limit is not None

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        assert self.limit is not None
        held = self._held.get(batch.demand, {})
        most = np.full(len(bins), self.limit, dtype=np.int64)
        for place in np.flatnonzero(np.isin(bins, list(held))).tolist() if held else ():
            most[place] = max(0, self.limit - held[int(bins[place])])
        return most

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        held = self._held.setdefault(batch.demand, {})
        held[number] = held.get(number, 0) + count

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        del batch
        return (
            f"{self._names[bins[0]]} has as many chunks of one demand as placement.chunksPerNode allows: {self.limit}"
        )
