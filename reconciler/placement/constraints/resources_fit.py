"""Requests against free room: kube-scheduler's plugin NodeResourcesFit, on existing nodes.

For planned nodes the loops in `loops/planned_nodes.py` judge the same on arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reconciler.placement.amounts import DEVICES, Amounts, Numbers, ResourceColumns, times
from reconciler.placement.batches import Batch
from reconciler.placement.phrases import amount_words, listed


class ResourcesFit:
    """Arrays have a row for each existing bin and a column for each resource.

    room: allocatable less daemon pods. running: what other pods use. KeepEmpty chunks count on top of running pods. For KeepMinimum
    chunks the larger of the two counts.
    """

    def __init__(self, names: Sequence[str], room: Amounts, running: Amounts, columns: ResourceColumns) -> None:
        self._names = names
        self._columns = columns
        self.room = room
        self.running = running.copy()
        self._empty = np.zeros_like(room)
        self._minimum = np.zeros_like(room)

    def free(self, batch: Batch) -> Amounts:
        """Room on each bin that counts for this batch (see `Recreation`)."""
        taken = self._minimum if batch.keeps_minimum else np.maximum(self.running, self._minimum)
        return np.asarray(self.room - self._empty - taken, dtype=np.int64)

    def concerns(self, batch: Batch) -> bool:
        del batch
        return True

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        beside = self._minimum[bins]
        taken = beside if batch.keeps_minimum else np.maximum(self.running[bins], beside)
        return times(self.room[bins] - self._empty[bins] - taken, batch.needs.request)

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        amounts = batch.needs.request * count
        if batch.pods:
            self.running[number] += amounts
        elif batch.keeps_minimum:
            self._minimum[number] += amounts
        else:
            self._empty[number] += amounts

    def unreserve(self, batch: Batch, number: int, count: int) -> None:
        self.reserve(batch, number, -count)

    def cause(self, batch: Batch, number: int) -> str:
        whole = times(np.maximum(self.room[number], 0), batch.needs.request)
        return "node full" if whole else "node too small"

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        numbers = list(bins)
        if self.cause(batch, numbers[0]) == "node too small":
            row, lacking = nearest(batch, np.maximum(self.room[numbers], 0))
            return f"{self._names[numbers[row]]} lacks {lack_words(self._columns, lacking)} even without the pods on it"
        free = np.maximum(self.free(batch)[numbers], 0)
        row, lacking = nearest(batch, free)
        words = f"{self._names[numbers[row]]} lacks {lack_words(self._columns, lacking)}"
        if len(lacking) != 1:
            return words
        (column,) = lacking
        name, has = self._columns.names[column], int(free[row][column])
        return words if name.startswith(DEVICES) or not has else f"{words}, with {amount_words(name, has)} free"


def nearest(batch: Batch, free: Amounts) -> tuple[int, dict[int, int]]:
    """The row that lacks the smallest share of the request, and by column how much it lacks."""
    request = batch.needs.request
    lacking = np.maximum(request - free, 0)
    shares = (lacking / np.maximum(request, 1)).sum(axis=1)
    row = int(np.argmin(shares))
    return row, {column: amount for column, amount in enumerate(lacking[row].tolist()) if amount > 0}


def lack_words(columns: ResourceColumns, lacking: Mapping[int, int]) -> str:
    """`200m CPU and 1Gi memory`."""
    return listed(amount_words(columns.names[column], amount) for column, amount in lacking.items()) or "room"
