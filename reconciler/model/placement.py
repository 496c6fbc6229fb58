"""What placement decided: which chunks go where, why others found no place, and which pods may have to wait although they have room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef, listed
from reconciler.model.requirements import Requirement, Taint


@dataclass(slots=True, order=True, unsafe_hash=True)
class Holding:
    """`count` chunks of group number `group` of one demand, in one bin.

    Never modified, though the class is not frozen: creating a frozen one takes three times as long, and there is one for each pod."""

    demand: ObjectRef
    group: int
    count: int


def words_of_holdings(holdings: Iterable[Holding]) -> str:
    """`3 of CapacityBuffer/shop/web, 1 of ProvisioningRequest/shop/train#2` (`#2`: group number 2)."""
    return ", ".join(
        f"{holding.count} of {holding.demand}" + (f"#{holding.group}" if holding.group else "") for holding in holdings
    )


def read_holdings(words: str) -> dict[tuple[str, int], int]:
    """How many chunks, by demand (its reference as text) and group, from `words_of_holdings`. What cannot be read is left out."""
    counts: dict[tuple[str, int], int] = {}
    for part in words.split(", "):
        count, _, demand = part.partition(" of ")
        name, _, group = demand.partition("#")
        if name and count.isdecimal() and (not group or group.isdecimal()):
            key = (name, int(group or 0))
            counts[key] = counts.get(key, 0) + int(count)
    return counts


def by_demand(holdings: Iterable[Holding]) -> dict[ObjectRef, int]:
    """How many chunks, by demand, its groups added up."""
    counts: dict[ObjectRef, int] = {}
    for holding in holdings:
        counts[holding.demand] = counts.get(holding.demand, 0) + holding.count
    return counts


def chunk_words(holdings: Iterable[Holding], most: int = 3) -> str:
    """`3 of CapacityBuffer/shop/web and Pod/shop/cart-1`, groups of one demand added up."""
    counts = sorted((str(demand), demand.kind == POD_KIND, count) for demand, count in by_demand(holdings).items())
    return listed((name if is_pod else f"{count:,} of {name}" for name, is_pod, count in counts), most=most)


@dataclass(frozen=True, slots=True)
class OccupiedBin:
    """Chunks placed in an existing bin: a node, or a NodeClaim whose node is on its way (then `node` is None)."""

    node: str | None
    node_claim: str | None
    holdings: tuple[Holding, ...]


@dataclass(slots=True, unsafe_hash=True)
class PlannedNode:
    """A node to be made; never modified (see `Holding`).

    Every listed type holds all of `holdings`, plus daemons, in every listed zone and capacity type.

    instance_types: cheapest first. price: USD an hour, of the cheapest offering among them. requests: chunks and daemons.
    requirements: those of the NodeClaim (pool ∩ chunks), with instance types, zones and capacity types.
    labels: one value for each custom requirement of the pool, by which Karpenter judges drift. price_known: False if the price of
    any offering is unknown; price is then 0.0 and means nothing. taints: in addition to those of its pool.
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


class SurgeMode(StrEnum):
    """What a full buffer promises: room as it was planned, room when the buffer is used alone, or when all are used at once."""

    PLANNED = "planned"
    ALONE = "alone"
    ALL = "all"


class Cause(StrEnum):
    """Why chunks have no place, in a few words, which reports, conditions and the plan's JSON show."""

    ALL_OR_NOTHING = "all or nothing"
    """These chunks had room themselves, but not the rest of their demand."""
    AT_LIMIT = "NodePool limit"
    BALLOON_PODS = "balloon pods"
    BEYOND_A_CAP = "beyond a cap"
    CONTRADICTION = "contradiction"
    INSTANCE_TYPE_TOO_SMALL = "instance type too small"
    MIN_VALUES = "minValues"
    NODE_FULL = "node full"
    NODE_LABELS = "node labels"
    NODE_NOT_AVAILABLE = "node not available"
    NODE_ON_ITS_WAY = "node on its way"
    NODE_TAINTS = "node taints"
    NODE_TOO_SMALL = "node too small"
    NODE_POOL_LABELS = "NodePool labels"
    NODE_POOL_NOT_USABLE = "NodePool not usable"
    NODE_POOL_TAINTS = "NodePool taints"
    NO_INSTANCE_TYPE = "no instance type"
    NO_NEW_NODES = "no new nodes"
    NO_NODE = "no node"
    NO_NODE_POOL = "no NodePool"
    NOT_AVAILABLE = "offering not available"
    PODS_FIRST = "pods come first"
    PORT_TAKEN = "host port taken"
    PROBED = "waits for another launch"
    """One node shows first whether its instance types are in stock again, or whether nodes like it take their chunks now."""
    RESOURCE_CLAIMS = "resource claims"
    TEMPLATE_FAILED = "template failed"
    TOPOLOGY = "topology"
    VOLUMES = "volumes"


@dataclass(frozen=True, slots=True)
class UnplacedReason:
    """Why candidates could not take a group."""

    cause: Cause
    count: int
    """How many candidates have this cause."""
    example: str
    """The nearest miss, as a sentence."""
    nearness: int = field(default=0, compare=False)
    """How close these candidates came; the closest shows what really stopped the group."""
    chunks: int = field(default=0, compare=False)
    """How many chunks have no place for this reason, counted when the plan is made."""
    fitting: int = field(default=0, compare=False)
    """Of `ALL_OR_NOTHING`, how many chunks would have a place."""
    node_pool: str = ""
    """The NodePool that makes no node for the group; "" where another thing than one NodePool stands in the way."""

    @property
    def order(self) -> tuple[int, int, str, str]:
        """The sort key of reasons: the nearest first, then the most frequent."""
        return (-self.nearness, -self.count, self.cause, self.example)


def first_sentence(reasons: Iterable[UnplacedReason]) -> str:
    """What stopped the first chunk without a place; "" where nothing did. `Cause.ALL_OR_NOTHING` is skipped, since it only follows from
    another reason."""
    own = [item for item in reasons if item.cause != Cause.ALL_OR_NOTHING]
    return min(own, key=lambda item: item.order).example if own else ""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Chunks of one group that found no place. group: its index in the demand. count: how many chunks."""

    demand: ObjectRef
    group: int
    count: int
    reasons: tuple[UnplacedReason, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer for all demands together. Bins and unplaced chunks are sorted, so that equal input gives equal output."""

    occupied: tuple[OccupiedBin, ...] = ()
    planned: tuple[PlannedNode, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was not judged (volumes that several claims compete for): one sentence each."""
    checked: bool = field(default=False, compare=False)
    """Whether the independent checker has already judged this placement, and found nothing."""

    @property
    def missing(self) -> int:
        """How many chunks and pods have no place."""
        return sum(item.count for item in self.unplaced)

    @property
    def price(self) -> float:
        """Of all new nodes together, USD an hour; without those whose price is not known (see `price_known`)."""
        return sum(node.price for node in self.planned)

    @property
    def price_known(self) -> bool:
        """Whether the price of every new node is known."""
        return all(node.price_known for node in self.planned)


MOST_TAKERS = 3


@dataclass(frozen=True, slots=True)
class Binding:
    """One pod of a rehearsal. group: of the demand's. node: where kube-scheduler would bind it; "" where it has to wait."""

    demand: ObjectRef
    group: int
    node: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The worst order that was tried for one demand.

    waiting: how many of its pods wait, of the `promised` that have room. alone: only its own pods came. takers: other demands whose pods
    are in its room. before: the one demand whose pods have only to come first; None where it takes more than that.
    bindings: each pod of the order, as they came.
    """

    demand: ObjectRef
    waiting: int
    promised: int
    alone: bool
    takers: tuple[ObjectRef, ...]
    before: ObjectRef | None
    bindings: tuple[Binding, ...]

    @property
    def words(self) -> str:
        """`2 of 12 may have to wait when web is scaled up before batch: pods of web take room that pods of batch need`."""
        begin = f"{self.waiting:,} of {self.promised:,} may have to wait"
        name = self.demand.name
        if self.alone:
            return f"{begin} even when nothing but {name} is scaled up: kube-scheduler binds its pods to other nodes than planned"
        if self.before is not None:
            other = self._name(self.before)
            return (
                f"{begin} when {other} is scaled up before {name}: pods of {other} take room that pods of {name} need"
            )
        names = listed(map(self._name, self.takers), most=MOST_TAKERS)
        took = (
            f"pods of {names} take room that pods of {name} need"
            if names
            else "kube-scheduler binds pods to other nodes than planned"
        )
        return f"{begin} when everything is scaled up at once: {took}"

    def _name(self, other: ObjectRef) -> str:
        if other.namespace != self.demand.namespace:
            return f"{other.namespace}/{other.name}"
        return str(other) if other.name == self.demand.name else other.name


@dataclass(frozen=True, slots=True)
class StockOut:
    """A placeholder that vanished before its node came up, as when no offering had capacity. demands: those it was for. message: what was
    asked for, and what headroom does next."""

    demands: tuple[ObjectRef, ...]
    message: str
