"""Nodes that take no pods: cordoned, being deleted, not ready, or about to be replaced.

kube-scheduler's plugin NodeUnschedulable, and what Karpenter adds. One more rule is headroom's own: chunks that must fit now stay off
nodes that are still coming up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.placement.arrays import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.phrases import listed


class NodeUnschedulable(Constraint):
    """names: of existing bins. unavailable: why each takes no pods; "" where it does."""

    named = Cause.NODE_NOT_AVAILABLE

    def __init__(self, names: Sequence[str], unavailable: Sequence[str]) -> None:
        self._names = names
        self._unavailable = unavailable
        self._most: Amounts = np.array([0 if why else PLENTY for why in unavailable], dtype=np.int64)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        del batch
        return self._most[bins]

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Each reason with the first node it holds for: `node-1 is cordoned, node-2 and 3 others are not ready`."""
        del batch
        counts = Counter(self._unavailable[number] for number in bins)
        first = {self._unavailable[number]: self._names[number] for number in reversed(bins)}
        return listed(_those(first[why], count - 1, why) for why, count in counts.most_common())


def _those(name: str, others: int, why: str) -> str:
    if not others:
        return f"{name} {why}"
    plural = f"are{why.removeprefix('is')}" if why.startswith("is ") else why
    return f"{name} and {others:,} other{'s' if others > 1 else ''} {plural}"


class NodeReadiness(NodeUnschedulable):
    """names: of existing bins; arriving: whether each is not up yet."""

    named = Cause.NODE_ON_ITS_WAY

    def __init__(self, names: Sequence[str], arriving: Sequence[bool]) -> None:
        super().__init__(names, ["is not ready yet" if late else "" for late in arriving])

    def concerns(self, batch: Batch) -> bool:
        return batch.only_ready
