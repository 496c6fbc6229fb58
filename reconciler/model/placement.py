"""What placement decided: which chunks go where, and the reasons of those that go nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Requirement, Taint
from reconciler.model.spot import Crowding


@dataclass(slots=True, order=True, unsafe_hash=True)
class Holding:
    """`count` chunks of group number `group` of one demand, in one bin. Never changed once made: a frozen class takes three times as
    long to make, and there is one for each pod."""

    demand: ObjectRef
    group: int
    count: int


def words_of_holdings(holdings: Iterable[Holding]) -> str:
    """`3 of CapacityBuffer/shop/web, 1 of ProvisioningRequest/shop/train#2` (the second's group number 2)."""
    return ", ".join(
        f"{holding.count} of {holding.demand}" + (f"#{holding.group}" if holding.group else "") for holding in holdings
    )


def read_holdings(words: str) -> dict[tuple[str, int], int]:
    """Chunks by demand (as it prints itself) and group, from `words_of_holdings`; what cannot be read is left out."""
    counts: dict[tuple[str, int], int] = {}
    for part in words.split(", "):
        count, _, demand = part.partition(" of ")
        name, _, group = demand.partition("#")
        if name and count.isdecimal() and (not group or group.isdecimal()):
            key = (name, int(group or 0))
            counts[key] = counts.get(key, 0) + int(count)
    return counts


@dataclass(frozen=True, slots=True)
class OccupiedBin:
    """Chunks placed in a bin that exists: a node, or a NodeClaim that is on its way (then `node_claim` is set and
    `node` is None)."""

    node: str | None
    node_claim: str | None
    holdings: tuple[Holding, ...]


@dataclass(slots=True, unsafe_hash=True)
class PlannedNode:
    """A node to be made; never changed once made, see `Holding`. Every listed type holds all of `holdings` plus daemons in every listed zone and capacity type.

    instance_types: cheapest first. price: USD an hour, of the cheapest offering among them. requests: chunks + daemons.
    requirements: what the NodeClaim must ask for (pool ∩ chunks), instance types, zones and capacity types included.
    labels: concrete labels for the pool's custom requirements, from which Karpenter judges drift. price_known: False when
    no price is known of some of them; price is then 0.0 and means nothing. taints: beside those of its pool.
    """

    node_pool: str
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity_types: tuple[str, ...]
    price: float
    requests: Resources
    requirements: tuple[Requirement, ...]
    holdings: tuple[Holding, ...]
    labels: tuple[tuple[str, str], ...] = ()
    price_known: bool = True
    taints: tuple[Taint, ...] = ()


ALL_OR_NOTHING = "all or nothing"
"""The cause of chunks that could be placed, had the rest of their demand found room too."""


@dataclass(frozen=True, slots=True)
class UnplacedReason:
    """Why candidates could not take a group. cause: in a few words (`node labels`); count: candidates that gave it;
    example: the nearest miss, as a sentence. nearness: how far these candidates came; the one that came farthest names what
    really stopped the group."""

    cause: str
    count: int
    example: str
    nearness: int = field(default=0, compare=False)

    @property
    def order(self) -> tuple[int, int, str, str]:
        """The sort key of reasons: what came nearest first, then the most frequent."""
        return (-self.nearness, -self.count, self.cause, self.example)


def leading_reason(reasons: Iterable[UnplacedReason]) -> UnplacedReason | None:
    """What stopped the first chunk that had no place. That the rest of its demand then has none either is no reason by itself."""
    return min((item for item in reasons if item.cause != ALL_OR_NOTHING), key=lambda item: item.order, default=None)


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Chunks of one group that found no place. group: its index in the demand; count: how many chunks."""

    demand: ObjectRef
    group: int
    count: int
    reasons: tuple[UnplacedReason, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer for all demands together; bins and unplaced are sorted, so equal input gives equal output."""

    occupied: tuple[OccupiedBin, ...] = ()
    planned: tuple[PlannedNode, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was not judged (DRA claims, unknown volumes): one sentence each; and `crowded` in words."""
    crowded: tuple[Crowding, ...] = ()
    """Demands of which more may come to stand on one spot offering than is allowed, which could not be helped."""
    checked: bool = field(default=False, compare=False)
    """Whether the independent checker looked at this very placement already, and found nothing."""
