"""What may be packed anew: the chunks on planned nodes, by item type, which is to say those that pack alike.

A chunk keeps its NodePool and the relaxation step that led to its node. It also keeps every topology domain in which moving it
could break a rule. So every other rule can be judged one node at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.optimizer.bin_types import BinTypes, Domains, Items, Pattern, Purchase, bin_types_for
from reconciler.optimizer.conflicts import conflicts_between
from reconciler.optimizer.open_domains import OpenDomains
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.constraints.topology_rules import Rule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.offers.compatibility import Compatibility
from reconciler.placement.requirements import ANYWHERE, Requirements, Values, one_of


@dataclass(slots=True)
class ItemType:
    """Chunks that ask for the same in the same places.

    pool: number of their NodePool's offers; step: the relaxation step by which they came to their nodes; domains: those that
    they keep; open_keys: labels of which any value will do that the compatibility allows; request: by resource; rules: of
    their spread constraints and anti-affinity on the hostname those that can matter; chunks: how many of which batch, in
    the order in which they were placed.
    """

    pool: int
    batch: Batch
    step: RelaxationStep
    domains: Domains
    open_keys: tuple[str, ...]
    compatibility: Compatibility
    rules: tuple[Rule, ...]
    chunks: list[tuple[Batch, int]] = field(default_factory=list)

    @property
    def request(self) -> Amounts:
        return self.batch.needs.request

    @property
    def count(self) -> int:
        return sum(count for _, count in self.chunks)


@dataclass(frozen=True)
class PackingProblem:
    """Bin packing with conflicts, bin types that differ in price, and limits on what is counted on a node.

    nodes: what the fast placement put on each node that may be changed; kept: indices of planned nodes that stay as they are.
    bin_types: what nodes may be bought as; requests: item types × resources; counted: item types × limits, 1 where an item type falls under the limit; limits: most
    chunks on a node of those counted; conflicts: item types × item types, see `conflicts_between`.
    """

    item_types: tuple[ItemType, ...]
    nodes: tuple[Pattern, ...]
    kept: tuple[int, ...]
    bin_types: BinTypes
    requests: Amounts
    counted: Amounts
    limits: Amounts
    conflicts: Mask

    @cached_property
    def counts(self) -> Amounts:
        """Chunks by item type."""
        return np.array([item.count for item in self.item_types], dtype=np.int64)

    @cached_property
    def most_per_node(self) -> Amounts:
        """By item type, as far as rules go."""
        most = np.where(self.conflicts.diagonal(), 1, PLENTY)
        if len(self.limits):
            most = np.minimum(most, np.where(self.counted > 0, self.limits, PLENTY).min(axis=1))
        return np.asarray(most, dtype=np.int64)


def entries_by_node(state: State) -> list[list[JournalEntry]]:
    """What was put on each planned node, in order."""
    found: list[list[JournalEntry]] = [[] for _ in range(state.planned.count)]
    for entry in state.entries():
        if entry.bin >= state.base:
            found[entry.bin - state.base].append(entry)
    return found


def packing_problem(state: State) -> PackingProblem:
    """Nodes of capacity reservations are kept, and those for one demand alone. So are nodes with chunks that have affinity on their host, share volumes, or came
    in a way that the node does not show."""
    by_node = entries_by_node(state)
    collected = _Collected(state, _over_limit(by_node, state.per_node))
    nodes: list[Pattern] = []
    kept: list[int] = []
    for index, entries in enumerate(by_node):
        held = collected.items_of(index, entries)
        if held is None:
            kept.append(index)
        else:
            nodes.append(Pattern(held, collected.open.of_node(index), int(state.planned.price[index]) / 1e9))
    found = collected.item_types
    counted, limits = _limits(state, found, collected.over_limit)
    purchases = [Purchase({item.pool: item.compatibility.rows(item.pool)}, item.compatibility.wanted) for item in found]
    return PackingProblem(
        item_types=tuple(found),
        nodes=tuple(nodes),
        kept=tuple(kept),
        bin_types=bin_types_for(state, purchases, sorted({key for item in found for key in item.open_keys})),
        requests=np.array([item.request for item in found], dtype=np.int64).reshape(
            len(found), len(state.columns.names)
        ),
        counted=counted,
        limits=limits,
        conflicts=conflicts_between(state, [item.batch for item in found]),
    )


def _over_limit(by_node: Iterable[Sequence[JournalEntry]], per_node: int | None) -> dict[ObjectRef, int]:
    """Demands with more chunks on new nodes than one of those may hold, all groups together, and how many that is."""
    if per_node is None:
        return {}
    totals: dict[ObjectRef, int] = {}
    for entry in (item for entries in by_node for item in entries):
        totals[entry.batch.demand] = totals.get(entry.batch.demand, 0) + entry.count
    return {demand: per_node for demand, total in totals.items() if total > per_node}


class _Collected:
    """Item types as they come up, numbered by what tells them apart."""

    def __init__(self, state: State, over_limit: Mapping[ObjectRef, int]) -> None:
        self._state = state
        self._numbers: dict[tuple[object, ...], int] = {}
        self._places: dict[tuple[tuple[str, Values], ...], Requirements] = {(): ANYWHERE}
        self.over_limit = over_limit
        self.open = OpenDomains(state)
        self.item_types: list[ItemType] = []

    def items_of(self, index: int, entries: Sequence[JournalEntry]) -> Items | None:
        """What a planned node holds; None where it is to be kept as it is."""
        template = self._state.planned.of(index)
        pool = template.pool
        if template.own_taint is not None or RESERVATION_MARK in self._state.offers[pool].pool.name:
            return None
        came = [(entry, self._item_type(index, pool, entry)) for entry in entries]
        held: dict[int, int] = {}
        if any(item is None for _, item in came):
            return None
        for entry, item in came:
            assert item is not None
            number = self._number(item)
            held[number] = held.get(number, 0) + entry.count
            self.item_types[number].chunks.append((entry.batch, entry.count))
        return tuple(sorted(held.items()))

    def _item_type(self, index: int, pool: int, entry: JournalEntry) -> ItemType | None:
        """By the first of its relaxation steps that the node was made for, in the domains in which it counts there."""
        state, batch = self._state, entry.batch
        rules = state.constraints(batch).rules
        if any(isinstance(rule, AffinityRule) and rule.key == HOSTNAME_LABEL for rule in rules):
            return None
        decided = {key: state.planned.decided(index, key) for key in state.constraints(batch).keys}
        domains = tuple((key, value) for key, value in sorted(decided.items()) if value is not None)
        if len(domains) < len(decided):
            return None
        here = self._place(domains, ())
        number = int(state.planned.template[index])
        for step in batch.needs.relaxations:
            if int(state.compatibilities.get(batch.needs, step, here).joined()[number]) < 0:
                continue
            open_keys = self.open.keys(entry, dict(domains))
            kept = tuple(item for item in domains if item[0] not in open_keys)
            compatibility = state.compatibilities.get(batch.needs, step, self._place(kept, open_keys))
            on_host = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL and _matters(rule))
            return ItemType(pool, batch, step, kept, open_keys, compatibility, on_host)
        return None

    def _place(self, domains: Domains, open_keys: Sequence[str]) -> Requirements:
        """The same object for the same place, since compatibilities are kept by identity."""
        values = [(key, one_of(value)) for key, value in domains]
        values += [(key, one_of(*self.open.values[key])) for key in open_keys]
        place = tuple(sorted(values, key=lambda item: item[0]))
        if place not in self._places:
            self._places[place] = Requirements(place)
        return self._places[place]

    def _number(self, item: ItemType) -> int:
        state, batch = self._state, item.batch
        counters = state.topology.counters
        counted_on_hosts = tuple(
            number
            for number in state.topology.counts_of(batch.needs)
            if counters[number].host_row >= 0 and counters[number].counted.leaving
        )
        key = (
            *(item.pool, item.compatibility.number, item.request.tobytes(), item.rules, counted_on_hosts),
            *(batch.keeps_minimum, batch.needs.shape.host_ports, item.open_keys),
            batch.demand if batch.demand in self.over_limit else None,
        )
        if key not in self._numbers:
            self._numbers[key] = len(self.item_types)
            self.item_types.append(item)
        return self._numbers[key]


def _matters(rule: Rule) -> bool:
    """Chunks that do not count under their own spread constraint find a new node as even as they leave it."""
    return isinstance(rule, AntiAffinityRule) or rule.counts_itself


def _limits(
    state: State, item_types: Sequence[ItemType], over_limit: Mapping[ObjectRef, int]
) -> tuple[Amounts, Amounts]:
    """Of chunks that bring a spread constraint on hosts and count under it a new node takes maxSkew, as there may always be an
    empty host. Those that bring the same constraint for other nodes too, or as KeepMinimum, are under one limit."""
    columns: dict[object, list[int]] = {}
    limits: dict[object, int] = {}
    for number, item in enumerate(item_types):
        for rule in item.rules:
            if isinstance(rule, SpreadRule):
                counted = state.topology.counters[rule.counter].counted.anywhere
                constraint = (counted, rule.max_skew, rule.min_domains)
                columns.setdefault(constraint, []).append(number)
                limits[constraint] = rule.max_skew
        demand = item.batch.demand
        if demand in over_limit:
            columns.setdefault(demand, []).append(number)
            limits[demand] = over_limit[demand]
    members = np.zeros((len(item_types), len(columns)), dtype=np.int64)
    for position, numbers in enumerate(columns.values()):
        members[numbers, position] = 1
    return members, np.array([limits[key] for key in columns], dtype=np.int64)
