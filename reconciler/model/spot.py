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
ON_DEMAND = "on-demand"
"""Capacity types, as Karpenter's label has them."""
_DECIMALS = 9


def most_on_one_offering(share: float, chunks: int) -> int:
    """The most of so many chunks that a share allows on one offering: rounded down, but one at least. share: over 0, at most 1."""
    return max(1, floor(round(share * chunks, _DECIMALS)))


@dataclass(frozen=True, slots=True, order=True)
class Crowding:
    """More of a demand may come to stand on spot nodes of one offering than the setting allows: on the fullest of them, should
    every launch go there that may. zones: those in which that many may come to be of the type, sorted, "" for one that nothing tells;
    chunks: there; allowed: by the setting; total: of the demand."""

    demand: ObjectRef
    instance_type: str
    zones: tuple[str, ...]
    chunks: int
    allowed: int
    total: int

    def __str__(self) -> str:
        return (
            f"{self.demand}: {self.chunks} of {self.total} chunks may come to stand on spot {self.instance_type} in "
            f"{_one_of(self.zones)}, where placement.spotShare allows {self.allowed}: nodes that are there, its pool's types and "
            "zones, its rules or its wishes leave no better choice"
        )


def _one_of(zones: tuple[str, ...]) -> str:
    """`zone-a`, or `one of zone-a, zone-b and zone-c`."""
    names = [zone or "a zone not known" for zone in zones]
    if len(names) == 1:
        return names[0]
    return f"one of {', '.join(names[:-1])} and {names[-1]}"
