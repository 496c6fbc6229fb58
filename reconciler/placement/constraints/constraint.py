"""The shape that every rule on a node has: how many chunks each bin takes, what is taken while placing, and why it is none.

kube-scheduler's plugins have the same parts: PreFilter (which may skip the rest), Filter, Reserve and Unreserve, and the reason of a
status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reconciler.placement.amounts import Amounts, Numbers
from reconciler.placement.batches import Batch


class Constraint(Protocol):
    """One rule, with what it has to know of the bins of one placement.

    Bins are numbered: those that exist first, planned nodes after them. `bins` are such numbers, each once.
    """

    def concerns(self, batch: Batch) -> bool:
        """Whether the rule says anything of such chunks. Nothing else is asked of it where it does not."""

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        """By bin, how many more chunks of the batch the rule lets come; `PLENTY` where it sets no bound."""

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        """So many chunks came to a bin."""

    def unreserve(self, batch: Batch, number: int, count: int) -> None:
        """They did not come after all. What came last is taken back first."""

    def cause(self, batch: Batch, number: int) -> str:
        """What keeps chunks off a bin that takes none, in a few words (`node taints`)."""

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Why none of these bins takes a chunk: the nearest miss, as a sentence."""


class Stateless:
    """The parts of a rule for which it does not matter what was placed."""

    def reserve(self, batch: Batch, number: int, count: int) -> None:
        """Nothing is used up."""

    def unreserve(self, batch: Batch, number: int, count: int) -> None:
        """Nothing was used up."""
