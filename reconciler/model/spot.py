"""How much of a demand may be on spot nodes of one offering, and where more than that may end up.

A provider may reclaim all spot capacity of one offering (an instance type in a zone) at once, while other offerings stay. So a
bound on what one offering holds is a bound on what one reclaim takes.
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
    """How many of the chunks a share allows on one offering: rounded down, at least one. share: above 0, at most 1."""
    return max(1, floor(round(share * chunks, _DECIMALS)))


@dataclass(frozen=True, slots=True, order=True)
class Crowding:
    """More of a demand may end up on spot nodes of one offering than the setting allows.

    The worst case counts, in which every node that may be launched from that offering is.
    """

    demand: ObjectRef
    instance_type: str
    zones: tuple[str, ...]
    """The zones in which that many may end up, sorted; "" where the zone is unknown."""
    chunks: int
    """How many may end up there."""
    allowed: int
    """How many the setting allows."""
    total: int
    """How many the demand has."""

    def __str__(self) -> str:
        return (
            f"{self.demand}: {self.chunks} of {self.total} chunks may end up on spot {self.instance_type} in "
            f"{_one_of(self.zones)}, where placement.spotShare allows {self.allowed}: its nodes, its constraints "
            "and the pool's types and zones leave no better choice"
        )


def _one_of(zones: tuple[str, ...]) -> str:
    """`zone-a`, or `one of zone-a, zone-b and zone-c`."""
    names = [zone or "a zone not known" for zone in zones]
    if len(names) == 1:
        return names[0]
    return f"one of {', '.join(names[:-1])} and {names[-1]}"
