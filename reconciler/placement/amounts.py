"""Resource lists as rows of integers, with one column for each resource that any chunk asks for.

Units are those of `Resources`: thousandths of CPU, bytes of memory, whole numbers of everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reconciler.model.quantity import CPU, MEMORY, PODS, Resources

Amounts: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int64]
"""Numbers of bins, types, rows or positions: indices into other arrays."""
LARGEST = 2**52
"""Amounts are capped here (4 PiB of memory), so that sums of thousands of them stay exact in 64 bits."""
PLENTY = 2**62
"""Stands for "no limit" among counts, and for "not available" among prices."""

DEVICES = "devices.headroom.dev/"
"""The prefix of a resource that counts the devices of a DeviceClass; the name of the class follows."""
ATTACHABLE = "attachable-volumes-csi-"
"""The prefix of a resource that counts the volumes attached to a node, as in earlier kubelets; the CSI driver's name follows."""


class ResourceColumns:
    """The resources that have a column: CPU, memory and pods, then all others by name."""

    def __init__(self, asked: Iterable[Resources]) -> None:
        names = {name for resources in asked for name, _ in resources.amounts} - {CPU, MEMORY, PODS}
        self.names = (CPU, MEMORY, PODS, *sorted(names))
        self._vectors: dict[tuple[tuple[str, int], ...], Amounts] = {}
        self._requests: dict[tuple[tuple[str, int], ...], Amounts] = {}
        """Cache by the amounts of resource lists, which hash faster than the lists themselves."""
        sold = [item for item in enumerate(self.names) if not item[1].startswith((ATTACHABLE, DEVICES))]
        self._sold = sorted(sold, key=itemgetter(1))

    def vector(self, resources: Resources) -> Amounts:
        """The amounts, shape (resources,). The array is shared and must not be modified."""
        vector = self._vectors.get(resources.amounts)
        if vector is None:
            amounts = dict(resources.amounts)
            cut = [max(-LARGEST, min(LARGEST, amounts.get(name, 0))) for name in self.names]
            vector = self._vectors[resources.amounts] = np.array(cut, dtype=np.int64)
        return vector

    def request(self, resources: Resources) -> Amounts:
        """The same as `vector`, but a request of LARGEST or more fits nowhere."""
        request = self._requests.get(resources.amounts)
        if request is None:
            vector = self.vector(resources)
            request = self._requests[resources.amounts] = np.where(vector >= LARGEST, PLENTY // 2, vector)
        return request

    def matrix(self, lists: Iterable[Resources]) -> Amounts:
        """The amounts of several lists, shape (lists, resources)."""
        rows = [self.vector(resources) for resources in lists]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names))

    def asked(self, amounts: Sequence[int]) -> Resources:
        """What a NodeClaim may request: without volumes and devices, which no instance type has a number of."""
        return Resources(tuple([(name, amounts[column]) for column, name in self._sold if amounts[column]]))


def times(room: Amounts, request: Amounts) -> Amounts:
    """How many times `request` fits into each row of `room`; shape (rows, resources) → (rows,), never below 0."""
    asked = request > 0
    if not asked.any():
        return np.full(room.shape[:-1], PLENTY, dtype=np.int64)
    return np.asarray(np.maximum((room[..., asked] // request[asked]).min(axis=-1), 0), dtype=np.int64)
