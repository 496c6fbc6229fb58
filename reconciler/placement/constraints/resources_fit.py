"""Requests against free room: kube-scheduler's plugin NodeResourcesFit, on existing nodes.

For planned nodes the loops in `loops/planned_nodes.py` judge the same on arrays. kube-scheduler scores nodes by what is left (LeastAllocated),
and in its plugin NodeResourcesBalancedAllocation by whether the pod brings CPU and memory into balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.placement.arrays import Amounts, Numbers, ResourceColumns, times
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.phrases import amount_words, listed

WEIGHT = 1
"""The weight of both scores in kube-scheduler's default profile."""
_UNSAID = {CPU: 100, MEMORY: 200 * 2**20}
"""What a container counts for in the score of what is left where it requests nothing (schedutil.DefaultMilliCPURequest)."""


class ResourcesFit(Constraint):
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

    def free(self, batch: Batch, bins: Numbers | slice = slice(None)) -> Amounts:
        """Room on each of these bins that counts for this batch (see `Recreation`)."""
        taken = self._minimum[bins]
        if not batch.keeps_minimum:
            taken = np.maximum(self.running[bins], taken)
        return np.asarray(self.room[bins] - self._empty[bins] - taken, dtype=np.int64)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        return times(self.free(batch, bins), batch.needs.request)

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        """Reserves what `count` chunks on the bin use. A count below 0 takes them back."""
        amounts = batch.needs.request * count
        if batch.pods:
            self.running[number] += amounts
        elif batch.keeps_minimum:
            self._minimum[number] += amounts
        else:
            self._empty[number] += amounts

    def cause(self, batch: Batch, number: int) -> Cause:
        whole = times(np.maximum(self.room[number], 0), batch.needs.request)
        return Cause.NODE_FULL if whole else Cause.NODE_TOO_SMALL

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        numbers = list(bins)
        if self.cause(batch, numbers[0]) is Cause.NODE_TOO_SMALL:
            row, lacking = nearest(batch, np.maximum(self.room[numbers], 0))
            return f"{self._names[numbers[row]]} lacks {lack_words(self._columns, lacking)} even without the pods on it"
        free = np.maximum(self.free(batch)[numbers], 0)
        row, lacking = nearest(batch, free)
        words = f"{self._names[numbers[row]]} lacks {lack_words(self._columns, lacking)}"
        if len(lacking) != 1:
            return words
        (column,) = lacking
        name, has = self._columns.names[column], int(free[row][column])
        return words if not has else f"{words}, with {amount_words(name, has)} free"


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


def weighed(requests: Resources) -> tuple[int, int]:
    """CPU and memory as LeastAllocated counts them. Containers are not known one by one here: of several, one may request nothing."""
    return requests.get(CPU) or _UNSAID[CPU], requests.get(MEMORY) or _UNSAID[MEMORY]


# The loops below are compiled with the scheduler's walk (see placement/scheduler). Columns 0 and 1 are CPU and memory.


def fits(room: Amounts, used: Amounts, node: int, request: Amounts) -> bool:
    """Whether what is asked for is free on the node."""
    for column in range(len(request)):
        if request[column] > 0 and request[column] > room[node, column] - used[node, column]:
            return False
    return True


def balance(room: Amounts, used: Amounts, node: int, cpu: int, memory: int) -> int:
    """100 where as much of CPU as of memory is taken once these are added, 50 where all of one and none of the other."""
    if room[node, 0] == 0 or room[node, 1] == 0:
        return 100
    of_cpu = min(1.0, (used[node, 0] + cpu) / room[node, 0])
    of_memory = min(1.0, (used[node, 1] + memory) / room[node, 1])
    return int((1.0 - abs((of_cpu - of_memory) / 2)) * 100)


def score_resources(
    totals: Numbers, able: Numbers, room: Amounts, used: Amounts, load: Amounts, request: Amounts, weight: Amounts
) -> None:
    """Adds the scores of both plugins to the totals of able nodes. load, weight: what pods and the pod count for, see `weighed`."""
    for index in range(len(able)):
        node = able[index]
        left, resources = 0, 0
        for column in range(2):
            if room[node, column] > 0:
                resources += 1
                free = room[node, column] - load[node, column] - weight[column]
                left += max(0, free) * 100 // room[node, column]
        if resources > 0:
            totals[node] += WEIGHT * (left // resources)
        if request[0] > 0 or request[1] > 0:
            after = balance(room, used, node, request[0], request[1])
            totals[node] += WEIGHT * (50 + (50 + after - balance(room, used, node, 0, 0)) // 2)
