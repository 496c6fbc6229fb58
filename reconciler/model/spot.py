"""How much of a demand may stand on spot nodes of one offering, and where more may come to. Set by placement, read by its checker
and, as sentences, by plan and report.

Spot capacity of one offering, an instance type in a zone, goes at once when its provider wants it back; that of other offerings
may stay. So a bound on what one offering holds is a bound on what one such event takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from reconciler.model.refs import ObjectRef

SPOT = "spot"
"""The capacity type, as Karpenter's label has it."""
_DECIMALS = 9


def most_on_one_offering(share: float, chunks: int) -> int:
    """The most of so many chunks that a share allows on one offering: rounded down, but one at least. share: over 0, at most 1."""
    return max(1, floor(round(share * chunks, _DECIMALS)))


@dataclass(frozen=True, slots=True, order=True)
class Crowding:
    """More of a demand may come to stand on spot nodes of one offering than the setting allows: on the fullest of them, should
    every launch go there that may. chunks: there; allowed: by the setting; total: of the demand."""

    demand: ObjectRef
    instance_type: str
    zone: str
    chunks: int
    allowed: int
    total: int

    def __str__(self) -> str:
        return (
            f"{self.demand}: {self.chunks} of {self.total} chunks may come to stand on spot {self.instance_type} in {self.zone}, "
            f"where placement.spotShare allows {self.allowed}: nodes that are there, its pool's types and zones or its rules "
            "leave no better choice"
        )
