"""Nodes that exist and NodeClaims on their way, as arrays of bins. Each is a host of its own, whatever kubernetes.io/hostname says.

A bin that takes no more chunks (not ready, cordoned, being deleted) stays in the arrays: the pods on it count for topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from reconciler.model.machines import Machine
from reconciler.model.nodes import NOT_READY_TAINTS, NodePool
from reconciler.model.pods import HostPort
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import Amounts, ResourceColumns
from reconciler.placement.cache import BoundGroup
from reconciler.placement.constraints.node_rules import NodeAffinity, TaintToleration
from reconciler.placement.nodes.machines import arrival_of
from reconciler.placement.offers.pool_offers import DaemonPod, PoolOffers
from reconciler.placement.requirements import Cell, LabelTable, Mask

NOT_READY = "is not ready"
HELD, PLACEHOLDER, OTHER = 0, 1, 2
"""Ranks of bins. Chunks go to held nodes first, so that as few nodes as possible have to be protected."""


@dataclass(frozen=True, slots=True)
class BinOrigin:
    """The machine of the cluster that a bin stands for.

    taints: those that stay once it is initialized. labels: by key; all values that it may get where that is not decided.
    daemons_known: what daemon pods take is already subtracted from its room.
    unavailable: why nothing may be placed there, "" when it may.
    """

    machine: Machine
    taints: tuple[Taint, ...]
    labels: Mapping[str, Cell]
    daemons_known: bool = False
    unavailable: str = ""

    @property
    def name(self) -> str:
        return self.machine.name


@dataclass(frozen=True, slots=True)
class LocatedGroup:
    """A bound group with its bins.

    rows: numbers of the bins, each once. counts: how many of its pods are on each of them, shape (rows,).
    """

    bound_group: BoundGroup
    rows: NDArray[np.intp]
    counts: Amounts


@dataclass(slots=True, eq=False)
class Frame:
    """Bins without the pods on them: what stays the same while nodes and NodeClaims do. Arrays have one row for each bin.

    base: allocatable, shape (bins, resources). rank: HELD, PLACEHOLDER or OTHER. usable: whether chunks may be placed there.
    closed: whether a bin takes no chunks beyond those it holds. index: the number of a node's bin, by the node's name.
    holding: by number of bin, its `headroom.dev/holds` annotation.
    placed: by identity of a bound group, its version and where its pods were last found.
    """

    origins: list[BinOrigin]
    table: LabelTable
    base: Amounts
    rank: Amounts
    usable: Mask
    closed: Mask
    index: dict[str, int]
    holding: dict[int, str]
    placed: dict[int, tuple[int, LocatedGroup]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.origins)

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


@dataclass(slots=True, eq=False, kw_only=True)
class Bins(Frame):
    """Existing bins with the pods on them: nodes by name, then NodeClaims without a node by name.

    room: allocatable less what daemon pods take, those that run and those to come; shape (bins, resources).
    running: what other pods take; shape (bins, resources). ports: by number of bin, the host ports in use.
    bound_groups: bound pods with their bins. booked: number of a bin, a demand by its words, and how many chunks of each of its
    groups are booked there.
    """

    room: Amounts
    running: Amounts
    ports: dict[int, tuple[HostPort, ...]]
    bound_groups: list[LocatedGroup]
    booked: list[tuple[int, str, tuple[int, ...]]]
    node_affinity: NodeAffinity
    taint_toleration: TaintToleration

    def names(self, numbers: NDArray[np.intp]) -> list[str]:
        return [self.origins[number].name for number in numbers.tolist()]

    def fullness(self) -> Amounts:
        """By bin, the free thousandths of its CPU plus those of its memory: the lower, the fuller."""
        free = np.maximum(self.room - self.running, 0)[:, :2]
        return np.asarray((free * 1000 // np.maximum(self.room[:, :2], 1)).sum(axis=1), dtype=np.int64)


def frame_of(
    view: ClusterView,
    offers: Mapping[str, PoolOffers],
    columns: ResourceColumns,
    *,
    leaving: frozenset[str],
    keeping: frozenset[str],
) -> Frame:
    assert columns.names[:2] == (CPU, MEMORY)
    pools = {name: item.pool for name, item in offers.items()}
    found = [_bin_of(machine, pools, offers, columns) for machine in view.machines]
    origins = [_as_asked(origin, leaving, keeping) for origin, _ in found]
    return Frame(
        origins=origins,
        table=LabelTable([origin.labels for origin in origins]),
        base=np.array([room for _, room in found], dtype=np.int64).reshape(len(origins), len(columns.names)),
        rank=np.array([_rank(origin.machine) for origin in origins], dtype=np.int64),
        usable=np.array([not origin.unavailable for origin in origins], dtype=np.bool_),
        closed=np.array([origin.name in keeping for origin in origins], dtype=np.bool_),
        index={origin.name: number for number, origin in enumerate(origins) if origin.machine.node is not None},
        holding={number: words for number, origin in enumerate(origins) if (words := origin.machine.held_for)},
    )


def bins_of(
    frame: Frame,
    bound_groups: Sequence[BoundGroup],
    daemons: Sequence[DaemonPod],
    columns: ResourceColumns,
    booked: Sequence[tuple[str, str, tuple[int, ...]]],
) -> Bins:
    names = [origin.name for origin in frame.origins]
    numbers = {name: number for number, name in enumerate(names)} if booked else {}
    bins = Bins(
        *(getattr(frame, item.name) for item in fields(frame)),
        room=frame.base.copy(),
        running=np.zeros_like(frame.base),
        ports={},
        bound_groups=[frame.place(bound_group) for bound_group in bound_groups],
        booked=[(numbers[name], demand, counts) for name, demand, counts in booked if name in numbers],
        node_affinity=NodeAffinity(names, frame.table),
        taint_toleration=TaintToleration(names, [origin.taints for origin in frame.origins]),
    )
    _count_pods(bins, columns)
    _expect_daemons(bins, daemons)
    return bins


def _as_asked(origin: BinOrigin, leaving: frozenset[str], keeping: frozenset[str]) -> BinOrigin:
    """The bin as the options have it. Chunks of a node that is not ready may wait for it to come back, as if it were ready."""
    if origin.name in keeping:
        taints = tuple(taint for taint in origin.taints if taint.key not in NOT_READY_TAINTS)
        unavailable = "" if origin.unavailable == NOT_READY else origin.unavailable
        origin = replace(origin, taints=taints, unavailable=unavailable)
    if origin.name in leaving and not origin.unavailable:
        claim = origin.machine.node_claim
        return replace(origin, unavailable="is about to be replaced" if claim is None else claim.why_left)
    return origin


def _rank(machine: Machine) -> int:
    if machine.is_held:
        return HELD
    return PLACEHOLDER if any(side.is_placeholder for side in machine.sides) else OTHER


def _bin_of(
    machine: Machine, pools: Mapping[str, NodePool], offers: Mapping[str, PoolOffers], columns: ResourceColumns
) -> tuple[BinOrigin, Amounts]:
    """The machine as a bin, with its allocatable."""
    node, claim, unavailable = machine.node, machine.node_claim, machine.why_closed
    if node is None:
        assert claim is not None
        arrival = arrival_of(claim, offers, columns)
        return BinOrigin(machine, claim.taints, arrival.labels, True, unavailable or arrival.unavailable), arrival.room
    if machine.is_initialized and not node.ready:
        unavailable = unavailable or NOT_READY
    labels: Mapping[str, Cell] = machine.labels
    if claim is not None and machine.awaits_registration:
        labels = {**arrival_of(claim, offers, columns).labels, **labels}
    origin = BinOrigin(machine, machine.lasting_taints(pools), labels, unavailable=unavailable)
    return origin, columns.vector(machine.allocatable)


def _count_pods(bins: Bins, columns: ResourceColumns) -> None:
    """Subtracts daemon pods from the room and counts other pods as running. Both keep their host ports."""
    for placed in bins.bound_groups:
        shape = placed.bound_group.shape
        amounts = columns.vector(shape.requests) * placed.counts[:, None]
        if placed.bound_group.is_daemon:
            bins.room[placed.rows] -= amounts
        else:
            bins.running[placed.rows] += amounts
        for number in placed.rows.tolist() if shape.host_ports else ():
            bins.ports[number] = (*bins.ports.get(number, ()), *shape.host_ports)


def _expect_daemons(bins: Bins, daemons: Sequence[DaemonPod]) -> None:
    """Subtracts what daemon pods need that will run on a node but are not there yet."""
    there: dict[tuple[str, str], set[int]] = {}
    for placed in bins.bound_groups:
        if placed.bound_group.daemon_set is not None:
            there.setdefault(placed.bound_group.daemon_set, set()).update(placed.rows.tolist())
    for daemon in daemons:
        running_on = there.get((daemon.namespace, daemon.name), set())
        for number in np.flatnonzero(bins.node_affinity.meeting(daemon.needs.terms)).tolist():
            origin = bins.origins[number]
            if origin.daemons_known or number in running_on or not daemon.tolerates(origin.taints):
                continue
            bins.room[number] -= daemon.needs.request
            if daemon.needs.shape.host_ports:
                bins.ports[number] = (*bins.ports.get(number, ()), *daemon.needs.shape.host_ports)
