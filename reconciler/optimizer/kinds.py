"""What the optimising mode may move: the chunks on planned nodes, in kinds that pack alike. Used by packings.

A chunk keeps the NodePool that the fast placement found for it, the way its wishes were met, and every topology domain but
the host that it counts in. So what is moved can unbalance no zone, and all that is left to look at is one node at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.constraints.topology_rules import Rule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.state import JournalEntry, State
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.compatibility import Compatibility
from reconciler.placement.requirements import ANYWHERE, Requirements, one_of


@dataclass(slots=True)
class Kind:
    """Chunks that ask for the same in the same places. pool: number of their NodePool's offers; meeting: what they ask of
    labels, with the domains they keep; waiting: how many there are, by batch in the order in which they were placed."""

    pool: int
    compatibility: Compatibility
    batch: Batch
    request: Amounts
    rules: tuple[Rule, ...]
    waiting: list[tuple[Batch, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.waiting)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one node holds. kinds: pairs of a kind's number and how many chunks of it, by number; size: of the node, -1 for one
    of the fast placement's; price: USD an hour."""

    kinds: tuple[tuple[int, int], ...]
    size: int
    price: float


@dataclass(slots=True)
class _Kinds:
    """Those that came up, and their numbers by what tells them apart."""

    list: list[Kind] = field(default_factory=list)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Movable:
    """kinds; nodes: for each planned node that may be made anew, how many of each kind it holds now, and its price in
    billionths of a USD an hour; fixed: numbers of those that stay as they are.

    asked: kinds × resources; shares: kinds × further things that a node has only so much of, with `bounds` of them
    (chunks that a spread constraint lets on one host, chunks of one demand); apart: which kinds exclude each other from a
    node, and on the diagonal themselves.
    """

    kinds: tuple[Kind, ...]
    nodes: tuple[tuple[dict[int, int], int], ...]
    fixed: tuple[int, ...]
    asked: Amounts
    shares: Amounts
    bounds: Amounts
    apart: Mask

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.array([kind.count for kind in self.kinds], dtype=np.int64)


def contents(state: State) -> list[list[JournalEntry]]:
    """What was put on each planned node, in order."""
    found: list[list[JournalEntry]] = [[] for _ in range(state.planned.count)]
    for put in state.entries():
        if put.bin >= state.base:
            found[put.bin - state.base].append(put)
    return found


def movable(state: State) -> Movable:
    """Left as they are: nodes of capacity reservations, nodes that hold chunks which want company on their host or share
    volumes, and nodes with a chunk of which it does not show how it came there."""
    made = _Kinds()
    listed = made.list
    nodes: list[tuple[dict[int, int], int]] = []
    fixed: list[int] = []
    wheres: dict[tuple[tuple[str, str], ...], Requirements] = {}
    contained = contents(state)
    capped = _capped(contained, state.per_node)
    for index, entries in enumerate(contained):
        observed = [_observed(state, index, put, wheres) for put in entries]
        pool = state.planned.of(index).pool
        known = [
            (put, compatibility)
            for put, compatibility in zip(entries, observed, strict=True)
            if compatibility is not None
        ]
        if len(known) < len(entries) or RESERVATION_MARK in state.offers[pool].pool.name:
            fixed.append(index)
            continue
        held: dict[int, int] = {}
        for put, compatibility in known:
            number = _kind_of(state, made, put.batch, compatibility, pool=pool, capped=put.batch.demand in capped)
            held[number] = held.get(number, 0) + put.count
            listed[number].waiting.append((put.batch, put.count))
        nodes.append((held, int(state.planned.price[index])))
    shares, bounds = _shares(state, listed, capped)
    return Movable(
        kinds=tuple(listed),
        nodes=tuple(nodes),
        fixed=tuple(fixed),
        asked=np.array([kind.request for kind in listed], dtype=np.int64).reshape(
            len(listed), len(state.columns.names)
        ),
        shares=shares,
        bounds=bounds,
        apart=_apart(state, listed),
    )


def _observed(
    state: State, index: int, put: JournalEntry, wheres: dict[tuple[tuple[str, str], ...], Requirements]
) -> Compatibility | None:
    """How a chunk came to its node: the first of its wishes that the node was made to meet, in the domains it counts in."""
    topology, batch = state.topology, put.batch
    rules = state.constraints(batch).rules
    if any(isinstance(rule, AffinityRule) and rule.key == HOSTNAME_LABEL for rule in rules):
        return None
    keys = {*topology.deciding_keys(batch.needs), *(rule.key for rule in rules)} - {HOSTNAME_LABEL}
    domains = []
    for key in sorted(keys):
        value = state.planned.decided(index, key)
        if value is None:
            return None
        domains.append((key, value))
    place = tuple(domains)
    if place not in wheres:
        wheres[place] = Requirements(tuple((key, one_of(value)) for key, value in place)) if place else ANYWHERE
    number = int(state.planned.template[index])
    for relaxation in batch.needs.relaxations:
        compatibility = state.compatibilities.get(batch.needs, relaxation, wheres[place])
        if int(compatibility.joined()[number]) >= 0:
            return compatibility
    return None


def _capped(contained: Sequence[Sequence[JournalEntry]], per_node: int | None) -> dict[ObjectRef, int]:
    """Demands with more chunks on new nodes than one of those may hold, all groups together, and how many that is."""
    if per_node is None:
        return {}
    totals: dict[ObjectRef, int] = {}
    for entry in (item for entries in contained for item in entries):
        totals[entry.batch.demand] = totals.get(entry.batch.demand, 0) + entry.count
    return {demand: per_node for demand, total in totals.items() if total > per_node}


def _kind_of(state: State, made: _Kinds, batch: Batch, compatibility: Compatibility, *, pool: int, capped: bool) -> int:
    shape = batch.needs.shape
    rules = state.constraints(batch).rules
    counters = state.topology.counters
    counted = [
        number
        for number in state.topology.counts_of(batch.needs)
        if counters[number].host_row >= 0 and counters[number].counted.leaving
    ]
    on_host = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL and _matters(rule))
    key = (
        *(pool, compatibility.number, batch.needs.request.tobytes(), on_host, tuple(counted), batch.keeps_minimum),
        *(shape.host_ports, batch.demand if capped else None),
    )
    if key not in made.numbers:
        made.numbers[key] = len(made.list)
        made.list.append(Kind(pool, compatibility, batch, batch.needs.request, on_host))
    return made.numbers[key]


def _matters(rule: Rule) -> bool:
    """Chunks that do not count under their own spread constraint find an empty new node as even as they leave it."""
    return isinstance(rule, AntiAffinityRule) or rule.counts_itself


def _shares(state: State, kinds: Sequence[Kind], capped: Mapping[ObjectRef, int]) -> tuple[Amounts, Amounts]:
    """Of chunks that bring a spread constraint on hosts and count under it themselves a new node takes maxSkew, as there may
    always be an empty host; those that count without it may come later (see balance). Chunks that bring the same constraint for
    other nodes too, or as KeepMinimum, are under one."""
    columns: dict[object, list[int]] = {}
    bounds: dict[object, int] = {}
    for number, kind in enumerate(kinds):
        for rule in kind.rules:
            if isinstance(rule, SpreadRule) and rule.counts_itself:
                counted = state.topology.counters[rule.counter].counted.anywhere
                constraint = (counted, rule.max_skew, rule.min_domains)
                columns.setdefault(constraint, []).append(number)
                bounds[constraint] = rule.max_skew
        demand = kind.batch.demand
        if demand in capped:
            columns.setdefault(demand, []).append(number)
            bounds[demand] = capped[demand]
    shares = np.zeros((len(kinds), len(columns)), dtype=np.int64)
    for position, members in enumerate(columns.values()):
        shares[members, position] = 1
    return shares, np.array([bounds[key] for key in columns], dtype=np.int64)


def _apart(state: State, kinds: Sequence[Kind]) -> Mask:
    counts = [frozenset(state.topology.counts_of(kind.batch.needs)) for kind in kinds]
    apart = np.zeros((len(kinds), len(kinds)), dtype=np.bool_)
    for number, kind in enumerate(kinds):
        for rule in kind.rules:
            if isinstance(rule, AntiAffinityRule):
                apart[number] |= np.array([rule.counter in counted for counted in counts], dtype=np.bool_)
        ports = kind.batch.needs.shape.host_ports
        if ports:
            apart[number] |= np.array([ports_clash(ports, other.batch.needs.shape.host_ports) for other in kinds])
    return np.asarray(apart | apart.T, dtype=np.bool_)


def most_of_each(kinds: Movable) -> Amounts:
    """How many of a kind one node takes as far as rules go."""
    caps = np.where(kinds.apart.diagonal(), 1, PLENTY)
    if kinds.shares.shape[1]:
        caps = np.minimum(caps, np.where(kinds.shares > 0, kinds.bounds, PLENTY).min(axis=1))
    return np.asarray(caps, dtype=np.int64)
