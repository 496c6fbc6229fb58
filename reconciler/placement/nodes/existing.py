"""Nodes that exist and NodeClaims on their way, as arrays of bins. Built once a placement, used by pack and topology.

A bin that nothing may be put on (not ready, cordoned, going away) stays in the arrays: the pods on it count for topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION, PLACEHOLDER_LABEL, Node, NodeClaim
from reconciler.model.pods import HostPort
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.amounts import Amounts, ResourceColumns
from reconciler.placement.constraints.node_affinity import NodeAffinity
from reconciler.placement.constraints.taint_toleration import TaintToleration
from reconciler.placement.label_table import Cell, LabelTable, Mask
from reconciler.placement.nodes.arriving import (
    Arrival,
    arrival_of,
    is_initialized,
    is_leaving,
    lasting_taints,
    merged_allocatable,
)
from reconciler.placement.nodes.bound_groups import BoundGroup
from reconciler.placement.nodes.hostnames import Hostnames, hostnames_of
from reconciler.placement.offers.daemons import Daemon
from reconciler.placement.offers.pool_offers import PoolOffers

HELD, PLACEHOLDER, OTHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class BinOrigin:
    """What a bin is in the cluster: a node, a NodeClaim, or both. name: the node's, else the NodeClaim's. daemons_known:
    its room is already reckoned after daemons. unavailable: why nothing may be put there, "" when it may."""

    name: str
    node: Node | None
    claim: NodeClaim | None
    taints: tuple[Taint, ...]
    labels: Mapping[str, Cell]
    daemons_known: bool = False
    unavailable: str = ""

    @property
    def is_placeholder(self) -> bool:
        node = self.node is not None and self.node.label(PLACEHOLDER_LABEL) == "true"
        return node or (self.claim is not None and self.claim.is_placeholder)

    @property
    def held_for(self) -> str:
        """What it was made or held for, in the words of its annotation; the node's are the newer."""
        sides = (self.node, self.claim)
        found = (side.annotation(HOLDS_ANNOTATION) for side in sides if side is not None)
        return next((words for words in found if words), "")

    @property
    def is_held(self) -> bool:
        sides = (self.node, self.claim)
        return any(side is not None and side.annotation(HELD_ANNOTATION) == "true" for side in sides)


@dataclass(frozen=True, slots=True)
class LocatedGroup:
    """Pods that are alike: how many (`counts`) are on which bins (`rows`, each once)."""

    bound_group: BoundGroup
    rows: NDArray[np.intp]
    counts: Amounts


@dataclass(frozen=True, slots=True)
class Frame:
    """Bins without the pods on them: what is the same for as long as nodes and NodeClaims are. base: allocatable; index: number
    of a node's bin by its name; holding: what bins were made or held for, in words; hostnames: which host each is; placed: flocks
    and where they were found last, by identity, with their version."""

    origins: list[BinOrigin]
    table: LabelTable
    base: Amounts
    rank: Amounts
    usable: Mask
    index: dict[str, int]
    holding: dict[int, str]
    hostnames: Hostnames
    placed: dict[int, tuple[int, LocatedGroup]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [origin.name for origin in self.origins]

    def place(self, bound_group: BoundGroup) -> LocatedGroup:
        known = self.placed.get(id(bound_group))
        if known is not None and known[0] == bound_group.version and known[1].bound_group is bound_group:
            return known[1]
        rows = [self.index.get(name, -1) for name in bound_group.nodes]
        there = np.array(rows, dtype=np.intp)
        counts = np.fromiter(bound_group.nodes.values(), dtype=np.int64, count=len(rows))
        placed = LocatedGroup(bound_group, there[there >= 0], counts[there >= 0])
        self.placed[id(bound_group)] = (bound_group.version, placed)
        return placed


@dataclass(slots=True)
class Bins:
    """Existing bins, nodes by name and then NodeClaims by name. Arrays have one row a bin.

    room: allocatable less daemon pods (those there and those to come); running: what other pods take; rank: HELD,
    PLACEHOLDER or OTHER; holding: what bins were made or held for, in words, by number; hostnames: which host each is by its
    label; flocks: bound pods with their bins.
    """

    origins: list[BinOrigin]
    table: LabelTable
    room: Amounts
    running: Amounts
    rank: Amounts
    usable: Mask
    ports: dict[int, tuple[HostPort, ...]]
    holding: dict[int, str]
    hostnames: Hostnames
    bound_groups: list[LocatedGroup]
    node_affinity: NodeAffinity
    taint_toleration: TaintToleration

    def __len__(self) -> int:
        return len(self.origins)

    def fullness(self) -> Amounts:
        """The lower, the fuller: thousandths of CPU and memory that are free, added up."""
        free = np.maximum(self.room - self.running, 0)[:, :2]
        return np.asarray((free * 1000 // np.maximum(self.room[:, :2], 1)).sum(axis=1), dtype=np.int64)


def frame_of(
    view: ClusterView,
    offers: Mapping[str, PoolOffers],
    columns: ResourceColumns,
    *,
    leaving: frozenset[str] = frozenset(),
) -> Frame:
    assert columns.names[:2] == (CPU, MEMORY)
    origins, rooms = _origins(view, offers, columns)
    origins = [
        replace(origin, unavailable="is about to be replaced")
        if origin.name in leaving and not origin.unavailable
        else origin
        for origin in origins
    ]
    rows = [origin.labels for origin in origins]
    return Frame(
        origins=origins,
        table=LabelTable(rows),
        base=np.array(rooms, dtype=np.int64).reshape(len(origins), len(columns.names)),
        rank=np.array([_rank(origin) for origin in origins], dtype=np.int64),
        usable=np.array([not origin.unavailable for origin in origins], dtype=np.bool_),
        index={origin.name: number for number, origin in enumerate(origins) if origin.node is not None},
        holding={number: words for number, origin in enumerate(origins) if (words := origin.held_for)},
        hostnames=hostnames_of(rows, sum(origin.node is not None for origin in origins)),
    )


def bins_of(
    frame: Frame, bound_groups: Sequence[BoundGroup], daemons: Sequence[Daemon], columns: ResourceColumns
) -> Bins:
    bins = Bins(
        origins=frame.origins,
        table=frame.table,
        room=frame.base.copy(),
        running=np.zeros_like(frame.base),
        rank=frame.rank,
        usable=frame.usable,
        ports={},
        holding=frame.holding,
        hostnames=frame.hostnames,
        bound_groups=[frame.place(bound_group) for bound_group in bound_groups],
        node_affinity=NodeAffinity(frame.names, frame.table),
        taint_toleration=TaintToleration(frame.names, [origin.taints for origin in frame.origins]),
    )
    _count_pods(bins, columns)
    _expect_daemons(bins, daemons)
    return bins


def _rank(origin: BinOrigin) -> int:
    if origin.is_held:
        return HELD
    return PLACEHOLDER if origin.is_placeholder else OTHER


def _origins(
    view: ClusterView, offers: Mapping[str, PoolOffers], columns: ResourceColumns
) -> tuple[list[BinOrigin], list[Amounts]]:
    claims = {claim.node_name: claim for claim in view.node_claims if claim.node_name is not None}
    nodes = sorted(view.nodes, key=lambda node: node.name)
    names = {node.name for node in nodes}
    origins, rooms = [], []
    for node in nodes:
        claim = claims.get(node.name)
        origins.append(_node_origin(node, claim, offers))
        rooms.append(columns.vector(merged_allocatable(node, claim)))
    waiting = (claim for claim in view.node_claims if claim.node_name is None or claim.node_name not in names)
    for claim in sorted(waiting, key=lambda claim: claim.name):
        arrival = arrival_of(claim, offers, columns)
        origins.append(_claim_origin(claim, arrival))
        rooms.append(arrival.room)
    return origins, rooms


def _node_origin(node: Node, claim: NodeClaim | None, offers: Mapping[str, PoolOffers]) -> BinOrigin:
    initialized = is_initialized(node, claim)
    unavailable = is_leaving(node, claim)
    if not unavailable and initialized and not node.ready:
        unavailable = "is not ready"
    taints = node.taints if initialized else lasting_taints(node, claim, offers)
    return BinOrigin(node.name, node, claim, taints, dict(node.labels), unavailable=unavailable)


def _claim_origin(claim: NodeClaim, arrival: Arrival) -> BinOrigin:
    unavailable = "is being deleted" if claim.deleting else arrival.unavailable
    return BinOrigin(claim.name, None, claim, claim.taints, arrival.labels, daemons_known=True, unavailable=unavailable)


def _count_pods(bins: Bins, columns: ResourceColumns) -> None:
    """Daemon pods are taken off the room, other pods count as running; both keep their host ports."""
    for placed in bins.bound_groups:
        shape = placed.bound_group.shape
        amounts = columns.vector(shape.requests) * placed.counts[:, None]
        if placed.bound_group.is_daemon:
            bins.room[placed.rows] -= amounts
        else:
            bins.running[placed.rows] += amounts
        for number in placed.rows.tolist() if shape.host_ports else ():
            bins.ports[number] = (*bins.ports.get(number, ()), *shape.host_ports)


def _expect_daemons(bins: Bins, daemons: Sequence[Daemon]) -> None:
    """Takes off the room of each node what the daemon pods need that will come to it but are not there yet."""
    there: dict[tuple[str, str], set[int]] = {}
    for placed in bins.bound_groups:
        if placed.bound_group.daemon_set is not None:
            there.setdefault(placed.bound_group.daemon_set, set()).update(placed.rows.tolist())
    for daemon in daemons:
        at_work = there.get((daemon.namespace, daemon.name), set())
        for number in np.flatnonzero(bins.node_affinity.meeting(daemon.needs.terms)).tolist():
            origin = bins.origins[number]
            if origin.daemons_known or number in at_work or not daemon.tolerates(origin.taints):
                continue
            bins.room[number] -= daemon.needs.request
            if daemon.needs.shape.host_ports:
                bins.ports[number] = (*bins.ports.get(number, ()), *daemon.needs.shape.host_ports)
