"""What decides whether a chunk may go to a node, one file for each rule: kube-scheduler's plugins, and what Karpenter adds.

`Constraint` is what every rule on a node has: how many chunks each bin takes, and the reason when it is none. kube-scheduler's plugins have
the same parts: PreFilter (which may skip the rest), Filter, and the reason of a status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from reconciler.model.placement import Cause
from reconciler.placement.arrays import Amounts, Numbers
from reconciler.placement.batches import Batch


class Constraint(ABC):
    """One rule, with what it needs to know about the bins of one placement.

    Bins are numbered: existing ones first, planned nodes after them. `bins` are such numbers, none of them twice.
    named: why a bin takes no chunk, in a few words (`node taints`).
    """

    named: ClassVar[Cause]

    def concerns(self, batch: Batch) -> bool:
        """Whether the rule applies to such chunks at all. If not, its other methods are not called."""
        del batch
        return True

    @abstractmethod
    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        """By bin, how many more chunks of the batch the rule allows; `PLENTY` where it sets no bound."""

    def cause(self, batch: Batch, number: int) -> Cause:
        """Why the bin takes no chunk, in a few words."""
        del batch, number
        return self.named

    @abstractmethod
    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Why none of these bins takes a chunk: the nearest miss, as a sentence."""
