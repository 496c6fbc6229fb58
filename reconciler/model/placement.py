"""What placement decided: which chunks go where, and every excuse. Made by placement, read by plan and report."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Requirement


@dataclass(frozen=True, slots=True, order=True)
class Holding:
    """`count` chunks of group number `group` of one demand, in one bin."""

    demand: ObjectRef
    group: int
    count: int


@dataclass(frozen=True, slots=True)
class OccupiedBin:
    """Chunks placed in a bin that exists: a node, or a NodeClaim that is on its way (then `node_claim` is set and
    `node` is None)."""

    node: str | None
    node_claim: str | None
    holdings: tuple[Holding, ...]


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node to be made. Every listed type holds all of `holdings` plus daemons in every listed zone and capacity type.

    instance_types: cheapest first; price: USD an hour, of the cheapest offering among them; requests: chunks + daemons;
    requirements: what the NodeClaim must ask for (pool ∩ chunks), instance types, zones and capacity types included.
    labels: concrete labels for the pool's custom requirements (see semantics: drift is judged from labels).
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


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why candidates could not take a group: one cause, how many candidates gave it, the nearest miss in words."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    demand: ObjectRef
    group: int
    count: int
    excuses: tuple[Excuse, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer for all demands together; bins and unplaced are sorted, so equal input gives equal output."""

    occupied: tuple[OccupiedBin, ...] = ()
    planned: tuple[PlannedNode, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was not judged (DRA claims, unknown volumes): one sentence each."""
