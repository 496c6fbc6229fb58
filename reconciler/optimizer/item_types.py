"""What may be packed anew: the chunks on planned nodes, by item type, which is to say those that pack alike.

A chunk keeps its NodePool and the relaxation step that led to its node. It also keeps every topology domain in which moving it
could break a rule. So every other rule can be judged one node at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.optimizer.bin_types import Items, Pattern, Purchase, bin_types_for
from reconciler.optimizer.node_rules import (
    conflicts_between,
    demands_over_share,
    shares_of_nodes,
    spread_over_nodes,
)
from reconciler.optimizer.packing import Packing
from reconciler.placement.amounts import Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import Rule
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.offers.compatibility import Compatibility
from reconciler.placement.requirements import ANYWHERE, Requirements, Values, one_of


@dataclass(slots=True)
class ItemType:
    """Chunks that ask for the same in the same places.

    pool: number of their NodePool's offers. request: by resource. rules: of their spread constraints and anti-affinity on the
    hostname those that can matter. chunks: how many of which batch, in the order in which they were placed.
    """

    pool: int
    batch: Batch
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
    """nodes: what the fast placement put on each node that may be changed; kept: indices of planned nodes that stay as they are."""

    item_types: tuple[ItemType, ...]
    nodes: tuple[Pattern, ...]
    kept: tuple[int, ...]
    packing: Packing


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
    placed: Counter[Batch] = Counter()
    for entry in (entry for entries in by_node for entry in entries):
        placed[entry.batch] += entry.count
    collected = _Collected(state, demands_over_share(state, placed))
    nodes: list[Pattern] = []
    kept: list[int] = []
    for index, entries in enumerate(by_node):
        held = collected.items_of(index, entries)
        if held is None:
            kept.append(index)
        else:
            pool = state.planned.of(index).pool
            nodes.append(Pattern(held, int(state.planned.price[index]) / 1e9, pool))
    found = collected.item_types
    batches = [item.batch for item in found]
    shares, spread = shares_of_nodes(batches, collected.over_share), spread_over_nodes(state, batches)
    purchases = [Purchase({item.pool: item.compatibility.rows(item.pool)}, item.compatibility.wanted) for item in found]
    packing = Packing(
        counts=np.array([item.count for item in found], dtype=np.int64),
        bin_types=bin_types_for(state, purchases),
        requests=np.array([item.request for item in found], dtype=np.int64).reshape(
            len(found), len(state.columns.names)
        ),
        counted=np.concatenate([shares[0], spread[0]], axis=1),
        limits=np.concatenate([shares[1], spread[1]]),
        conflicts=conflicts_between(state, batches),
    )
    return PackingProblem(tuple(found), tuple(nodes), tuple(kept), packing)


class _Collected:
    """Item types as they come up, numbered by what tells them apart."""

    def __init__(self, state: State, over_share: Mapping[ObjectRef, int]) -> None:
        self._state = state
        self._numbers: dict[tuple[object, ...], int] = {}
        self._places: dict[tuple[tuple[str, Values], ...], Requirements] = {(): ANYWHERE}
        self.over_share = over_share
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
        here = self._place(domains)
        number = int(state.planned.template[index])
        for step in batch.needs.relaxations:
            compatibility = state.compatibilities.get(batch.needs, step, here)
            if int(compatibility.joined()[number]) >= 0:
                on_host = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL and _matters(rule))
                return ItemType(pool, batch, compatibility, on_host)
        return None

    def _place(self, domains: Sequence[tuple[str, str]]) -> Requirements:
        """The same object for the same place, since compatibilities are kept by identity."""
        place = tuple((key, one_of(value)) for key, value in domains)
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
            *(batch.keeps_minimum, batch.needs.shape.host_ports),
            batch.demand if batch.demand in self.over_share else None,
        )
        if key not in self._numbers:
            self._numbers[key] = len(self.item_types)
            self.item_types.append(item)
        return self._numbers[key]


def _matters(rule: Rule) -> bool:
    """Chunks that do not count under their own spread constraint find a new node as even as they leave it."""
    return isinstance(rule, AntiAffinityRule) or rule.counts_itself
