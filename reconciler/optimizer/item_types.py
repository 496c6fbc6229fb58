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
from reconciler.optimizer.bin_types import Pattern, bin_types_for, planned_pattern
from reconciler.optimizer.node_rules import (
    conflicts_between,
    demands_over_share,
    limits_of_nodes,
)
from reconciler.optimizer.packing import Packing, requests_of
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import Rule
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
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
            nodes.append(planned_pattern(state, index, held))
    found = collected.item_types
    batches = [item.batch for item in found]
    counted, limits = limits_of_nodes(state, batches, collected.over_share, spread=True)
    packing = Packing(
        counts=np.array([item.count for item in found], dtype=np.int64),
        bin_types=bin_types_for(state, [{item.pool: item.compatibility.rows(item.pool)} for item in found]),
        requests=requests_of(state, batches),
        counted=counted,
        limits=limits,
        conflicts=conflicts_between(state, batches) | _ask_for_other_labels(state, found),
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

    def items_of(self, index: int, entries: Sequence[JournalEntry]) -> Counter[int] | None:
        """What a planned node holds; None where it is to be kept as it is."""
        template = self._state.planned.of(index)
        pool = template.pool
        if template.own_taint is not None or RESERVATION_MARK in self._state.offers[pool].pool.name:
            return None
        came = [item for entry in entries if (item := self._item_type(index, pool, entry)) is not None]
        if len(came) < len(entries):
            return None
        held: Counter[int] = Counter()
        for entry, item in zip(entries, came, strict=True):
            number = self._number(item)
            held[number] += entry.count
            self.item_types[number].chunks.append((entry.batch, entry.count))
        return held

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
            *(item.pool, item.compatibility.number, batch.needs.request.tobytes(), item.rules, counted_on_hosts),
            *(batch.keeps_minimum, batch.needs.shape.host_ports),
            batch.demand if batch.demand in self.over_share else None,
        )
        if key not in self._numbers:
            self._numbers[key] = len(self.item_types)
            self.item_types.append(item)
        return self._numbers[key]


def _ask_for_other_labels(state: State, items: Sequence[ItemType]) -> Mask:
    """Of labels that only the node has, not the catalog. Item types × item types."""
    known = {ANYWHERE: 0}
    own = [item.compatibility.wanted.without(state.offers[item.pool].offerings.table.keys) for item in items]
    labels = np.array([known.setdefault(wanted, len(known)) for wanted in own], dtype=np.int64)
    return np.asarray((labels[:, None] != labels) & (np.minimum.outer(labels, labels) > 0), dtype=np.bool_)


def _matters(rule: Rule) -> bool:
    """Chunks that do not count under their own spread constraint find a new node as even as they leave it."""
    return isinstance(rule, AntiAffinityRule) or rule.counts_itself
