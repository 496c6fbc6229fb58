"""Nodes that exist and NodeClaims on their way, as arrays of bins. Each is a host of its own, whatever kubernetes.io/hostname says.

A bin that takes no more chunks (not ready, cordoned, being deleted) stays in the arrays: the pods on it count for topology. And which pods
wait for a node that kube-scheduler has chosen for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    NOT_READY_TAINTS,
    REGISTERED_LABEL,
    STABLE_LABELS,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.pods import HostPort, Pod
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import Amounts, ResourceColumns
from reconciler.placement.cache import BoundGroup
from reconciler.placement.constraints.node_rules import NodeAffinity, TaintToleration, tolerated
from reconciler.placement.offers.pool_offers import DaemonPod, PoolOffers
from reconciler.placement.requirements import Cell, LabelTable, Mask, Requirements

NOT_READY = "is not ready"
HELD, PLACEHOLDER, OTHER = 0, 1, 2
"""Ranks of bins. Chunks go to held nodes first, so that as few nodes as possible have to be protected."""


@dataclass(frozen=True, slots=True)
class BinOrigin:
    """The machine of the cluster that a bin stands for.

    taints: those that stay once it is initialized. labels: by key; all values that it may get where that is not decided.
    unavailable: why nothing may be placed there, "" when it may.
    """

    machine: Machine
    taints: tuple[Taint, ...]
    labels: Mapping[str, Cell]
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

    @classmethod
    def of(cls, bound_group: BoundGroup, row_of: Mapping[str, int]) -> LocatedGroup:
        """row_of: by name of a node. Pods on other nodes are left out."""
        rows = np.array([row_of.get(name, -1) for name in bound_group.nodes], dtype=np.intp)
        counts = np.fromiter(bound_group.nodes.values(), dtype=np.int64, count=len(rows))
        return cls(bound_group, rows[rows >= 0], counts[rows >= 0])


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
        placed = LocatedGroup.of(bound_group, self.index)
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
        labels, room, unknown = _arrival_of(claim, offers, columns)
        return BinOrigin(machine, claim.taints, labels, unavailable or unknown), room
    if machine.is_initialized and not node.ready:
        unavailable = unavailable or NOT_READY
    labels = machine.labels
    if claim is not None and machine.awaits_registration:
        labels = {**_arrival_of(claim, offers, columns)[0], **labels}
    origin = BinOrigin(machine, machine.lasting_taints(pools), labels, unavailable)
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
            # Of a NodeClaim without a node, what daemon pods take is already subtracted.
            if origin.machine.node is None or number in running_on or not daemon.tolerates(origin.taints):
                continue
            bins.room[number] -= daemon.needs.request
            if daemon.needs.shape.host_ports:
                bins.ports[number] = (*bins.ports.get(number, ()), *daemon.needs.shape.host_ports)


def _arrival_of(
    claim: NodeClaim, offers: Mapping[str, PoolOffers], columns: ResourceColumns
) -> tuple[Mapping[str, Cell], Amounts, str]:
    """What is certain about a node that is on its way: its labels, with all values that it may get where that is not decided; its room less
    what daemon pods take; and why nothing may be placed there, "" when it may.

    Its room is that of the smallest instance type it may still become. Where no such type is known, the room is what the NodeClaim
    requests: any provider must launch at least that.
    """
    pool = offers.get(claim.label(NODEPOOL_LABEL) or "")
    settled = Requirements.labels(claim.labels)
    asked = settled.both(Requirements.of(claim.requirements).without(frozenset(key for key, _ in settled.entries)))
    promised = columns.vector(claim.allocatable) if claim.allocatable else None
    types = None if pool is None else _types(pool, asked)
    if pool is None or types is None or not types.any():
        room = columns.vector(claim.requests) if promised is None else promised
        unknown = not claim.requests and promised is None
        return _labels(asked, claim), room, "may become no instance type that is known" if unknown else ""
    load = pool.daemon_load[types].max(axis=0)
    known = asked.only(pool.offerings.table.keys)
    room = _least_room(pool, types, known) if promised is None else promised - load
    # Headroom backs off from what ran out, but Karpenter may still launch it for this NodeClaim.
    others = [labels for labels in pool.offerings.others_may_buy if known.match(labels)]
    labels = _row_labels(pool, pool.offerings.table.matching(known), others) | _labels(asked, claim)
    # The node will also have the older spellings of these labels.
    labels |= {key: labels[stable] for key, stable in STABLE_LABELS.items() if stable in labels and key not in labels}
    return labels, np.asarray(room, dtype=np.int64), ""


def _least_room(pool: PoolOffers, types: Mask, known: Requirements) -> Amounts:
    """Of a type that is not sold where the node will be, nobody knows whether an overlay reaches it there."""
    room = pool.room
    if pool.overlaid:
        sold = pool.offerings.types_in(pool.rows & pool.offerings.table.matching(known))
        room = room.copy()
        for index, amounts in pool.overlaid.items():
            if not sold[index]:
                room[index] -= amounts
    return np.asarray(room[types].min(axis=0), dtype=np.int64)


def _types(pool: PoolOffers, asked: Requirements) -> Mask:
    """By instance type, whether the NodeClaim may become it.

    Types that it names count even if they cannot be bought now, since it may already have been launched.
    """
    named = asked.get(INSTANCE_TYPE_LABEL)
    if named is not None:
        return np.array([named.allows(item.name) for item in pool.offerings.types], dtype=np.bool_)
    table = pool.offerings.table
    return pool.offerings.types_in(pool.rows & table.matching(asked.only(table.keys)))


def _row_labels(pool: PoolOffers, rows: Mask, others: Sequence[Mapping[str, str]]) -> dict[str, Cell]:
    labels: dict[str, Cell] = {}
    for key in pool.offerings.table.keys:
        seen = {*pool.offerings.table.seen(key, rows), *(item.get(key) for item in others)}
        values = sorted(cell for cell in seen if isinstance(cell, str))
        possible: tuple[str | None, ...] = (*values, None) if None in seen else tuple(values)
        if possible:
            labels[key] = possible[0] if len(possible) == 1 else possible
    return labels


def _labels(asked: Requirements, claim: NodeClaim) -> dict[str, Cell]:
    """Labels that the NodeClaim decides or narrows, and those that Karpenter adds once the node is up."""
    labels: dict[str, Cell] = {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
    for key, values in asked.entries:
        if not values.complement and values.names:
            names = tuple(sorted(values.names))
            labels[key] = names[0] if len(names) == 1 else names
    return labels | dict(claim.labels)


_nominated_node = attrgetter("nominated_node")


def with_nominated(view: ClusterView) -> ClusterView:
    """The cluster with pods on the node that kube-scheduler has chosen for them, where the node takes pods. Without any such pod it is
    the same object.

    When kube-scheduler preempts, it writes the node into `status.nominatedNodeName`. It waits until the pods that it evicts have ended,
    and tries that node first. Karpenter leaves such a pod alone (`IsPreempting` in pkg/utils/pod). Pods of no higher priority are kept
    from its room (`RunFilterPluginsWithNominatedPods`). So the pod is as good as bound.

    If the node is gone or takes no pods, kube-scheduler looks elsewhere at its next try. It withdraws the nomination if there is no other
    node (`Evaluator.Preempt`), and the pod waits like any other.
    """
    if not any(map(_nominated_node, view.pods)):  # by far the fastest way to see that there are none
        return view
    nominated = {pod.nominated_node for pod in view.pods}
    nodes = {
        node.name: node
        for machine in view.machines
        if (node := machine.node) is not None and node.name in nominated
        if node.ready and not machine.why_closed
    }
    pods = tuple(_on_its_node(pod, nodes) if pod.nominated_node else pod for pod in view.pods)
    return replace(view, pods=pods, nominated=tuple(filter(_nominated_node, pods)))


def _on_its_node(pod: Pod, nodes: Mapping[str, Node]) -> Pod:
    """nodes: those that take pods."""
    node = nodes.get(pod.nominated_node)
    if node is None or pod.deleting or not tolerated(node.taints, pod.shape.tolerations):
        return pod
    return replace(pod, node_name=node.name)
