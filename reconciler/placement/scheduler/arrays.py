"""The arrays of kube-scheduler's model: nodes as rows, pods that are the same to it as kinds, rules as rows with counters.

Which rows a pod has is said by the plugins' files in `constraints/`. Here equal rows become one, and running pods are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL, Node
from reconciler.model.pods import HostPort, Pod, PodShape
from reconciler.model.requirements import Taint
from reconciler.placement.amounts import Amounts, Numbers, ResourceColumns
from reconciler.placement.constraints.domain_counters import EACH_NODE, Inclusion, TopologyRule
from reconciler.placement.constraints.node_affinity import NodeAffinity
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.constraints.resources_fit import weighed
from reconciler.placement.constraints.rule_table import RuleTable
from reconciler.placement.constraints.taint_toleration import TaintToleration, tolerated
from reconciler.placement.loops.arrays import ANTI_AFFINITY_ITSELF, CounterArrays
from reconciler.placement.memory import BoundGroup, Tally
from reconciler.placement.needs import KnownNeeds, Needs
from reconciler.placement.requirements import LabelTable, Mask
from reconciler.placement.scheduler.walk import (
    ABLE,
    CAUSES,
    CLOSED,
    LABELS,
    PORTS,
    TAINTS,
    BinArrays,
    KindArrays,
    RowArrays,
    ScratchArrays,
)

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class PodKind:
    """Pods that are the same to kube-scheduler. by_default: whether the default spread constraints apply where they have none."""

    shape: PodShape
    by_default: bool = False


_Running: TypeAlias = tuple[BoundGroup, Numbers, Amounts]
"""Pods of one shape that run: the rows of their nodes, and how many are on each."""


class SchedulerArrays:
    """All that the walk reads and writes, in the groups in which it takes them."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Iterable[Pod],
        kinds: Sequence[PodKind],
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._nodes = nodes
        self._columns = ResourceColumns(kind.shape.requests for kind in kinds)
        self._needs = KnownNeeds(self._columns.request)
        self._table = RuleTable(namespaces)
        self._labels = LabelTable([dict(node.labels) for node in nodes])
        self._node_affinity = NodeAffinity([node.name for node in nodes], self._labels)
        self._taints = TaintToleration([node.name for node in nodes], [node.taints for node in nodes])
        self._keys = {EACH_NODE: 0, HOSTNAME_LABEL: 1}
        self._ports: dict[tuple[HostPort, ...], int] = {}
        running = _running(pods, {node.name: row for row, node in enumerate(nodes)})
        for shape in (*(kind.shape for kind in kinds), *(group.shape for group, _, _ in running)):
            self._table.watch_owners(shape)
        self.kinds = self._kind_arrays(kinds)
        rules = [[*self._table.own_rules(needs), *self._table.others_rules(needs.shape)] for needs in self._of(kinds)]
        soft = [self._table.soft_spread(self._needs.of(kind.shape), by_default=kind.by_default) for kind in kinds]
        drawn = [self._table.attractions(kind.shape) for kind in kinds]
        for kind in kinds:  # only now are all other counters known, so that these follow them
            if kind.shape.host_ports:
                self._ports.setdefault(kind.shape.host_ports, len(self._table.counted) + len(self._ports))
        rule_rows = [
            [*self._port_rows(kind.shape), *(self._row(rule) for rule in of_kind)]
            for kind, of_kind in zip(kinds, rules, strict=True)
        ]
        soft_rows = [[(item.counter, self._key(item.key), item.max_skew) for item in of_kind] for of_kind in soft]
        counted = [[(number,) for number in self._counted_in(kind.shape)] for kind in kinds]
        self.rows: RowArrays = _tables(len(kinds), rule_rows, soft_rows, drawn, counted)
        self.counters, domains = self._counter_arrays()
        most = max(int(self.counters[2].max(initial=0)), len(nodes), len(domains[0]))
        self.bins: BinArrays = (domains, *self._amounts(running))
        self.scratch: ScratchArrays = (
            np.zeros(len(nodes), dtype=np.int64),
            np.zeros(len(nodes), dtype=np.int64),
            np.zeros(len(nodes), dtype=np.int64),
            np.zeros(len(nodes), dtype=np.float64),
            np.zeros(most + 1, dtype=np.int64),
        )
        self._count(running)

    def _of(self, kinds: Iterable[PodKind]) -> list[Needs]:
        return [self._needs.of(kind.shape) for kind in kinds]

    def _key(self, key: str) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _kind_arrays(self, kinds: Sequence[PodKind]) -> KindArrays:
        needs, nodes = self._of(kinds), len(self._nodes)
        shapes = [kind.shape for kind in kinds]
        asked = [shape.requests.amounts for shape in shapes]
        fit, requests = _shared(asked, lambda kind: needs[kind].request, len(self._columns.names))
        _, weights = _shared(asked, lambda kind: weighed(shapes[kind].requests), 2)
        terms = [(item.terms, item.shape.tolerations) for item in needs]
        masked, masks = _shared(terms, lambda kind: self._mask(needs[kind]), nodes)
        tolerations = [shape.tolerations for shape in shapes]
        avoiding, avoided = _shared(tolerations, lambda kind: self._taints.avoided(tolerations[kind]), nodes)
        preferred = [shape.preferred_node_terms for shape in shapes]
        liking, liked = _shared(preferred, lambda kind: self._node_affinity.liked(preferred[kind]), nodes)
        strict = [int(bool(shape.topology_spread)) for shape in shapes]
        looks = np.array([fit, masked, avoiding, liking, strict], dtype=np.int64).T.copy()
        return looks, requests, weights, masks, avoided, liked

    def _mask(self, needs: Needs) -> Numbers:
        """By node, the verdict of the rules that depend on the node alone."""
        tolerations = needs.shape.tolerations
        closed = [
            not node.ready or node.deleting or (node.unschedulable and not tolerated((_CORDONED,), tolerations))
            for node in self._nodes
        ]
        mask = np.where(self._node_affinity.meeting(needs.terms), ABLE, LABELS)
        mask = np.where(self._taints.tolerating(tolerations), mask, TAINTS)
        return np.where(np.array(closed, dtype=np.bool_), CLOSED, mask)

    def _row(self, rule: TopologyRule) -> tuple[int, ...]:
        return (rule.code, rule.counter, *rule.numbers, rule.counts_itself, CAUSES.index(rule.cause), 0)

    def _port_rows(self, shape: PodShape) -> list[tuple[int, ...]]:
        """A pod's host ports keep it off nodes where some other pod has one of them."""
        if not shape.host_ports:
            return []
        return [(ANTI_AFFINITY_ITSELF, self._ports[shape.host_ports], 0, 0, 1, PORTS, 0)]

    def _counted_in(self, shape: PodShape) -> list[int]:
        taking = [number for ports, number in self._ports.items() if ports_clash(shape.host_ports, ports)]
        return self._table.counts_of(shape) + taking

    def _counter_arrays(self) -> tuple[CounterArrays, Numbers]:
        """With the domains of all keys: keys × nodes, -1 where a node lacks the label."""
        counted = self._table.counted
        views = [None, *{id(item.inclusion): item.inclusion for item in counted if item.inclusion}.values()]
        view_of = {id(inclusion): number for number, inclusion in enumerate(views)}
        keys = [*(self._key(item.key) for item in counted), *(self._key(EACH_NODE) for _ in self._ports)]
        domains, sizes = zip(*(self._domains_of(key) for key in self._keys), strict=True)
        width = np.array([sizes[key] for key in keys], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        view = [*(view_of[id(item.inclusion)] for item in counted), *(0 for _ in self._ports)]
        included = np.array([self._included(inclusion) for inclusion in views], dtype=np.bool_)
        all_domains = np.array(domains, dtype=np.int64)
        present = np.zeros(int(first[-1]), dtype=np.bool_)
        for number, key in enumerate(keys):
            there = all_domains[key][included[view[number]]]
            present[first[number] + there[there >= 0]] = True
        counters: CounterArrays = (
            np.array(keys, dtype=np.int64),
            first[:-1].copy(),
            width,
            np.array(view, dtype=np.int64),
            included.reshape(len(views), len(self._nodes)),
            present,
            np.zeros(int(first[-1]), dtype=np.int64),
            np.zeros(len(keys), dtype=np.int64),
        )
        return counters, all_domains.reshape(len(self._keys), len(self._nodes))

    def _domains_of(self, key: str) -> tuple[Numbers, int]:
        """The number of each node's domain, and how many there are."""
        if key == EACH_NODE:
            return np.arange(len(self._nodes), dtype=np.int64), len(self._nodes)
        codes, cells = self._labels.column(key)
        numbers = np.array([-1 if cell is None else code for code, cell in enumerate(cells)], dtype=np.int64)
        return (numbers[codes] if len(cells) else codes.astype(np.int64)), len(cells)

    def _included(self, inclusion: Inclusion | None) -> Mask:
        mask = np.ones(len(self._nodes), dtype=np.bool_)
        if inclusion is None:
            return mask
        for key in inclusion.keys:
            mask &= self._labels.having(key)
        if inclusion.terms is not None:
            mask &= self._node_affinity.meeting(inclusion.terms)
        return mask if inclusion.tolerations is None else mask & self._taints.tolerating(inclusion.tolerations)

    def _amounts(self, running: Iterable[_Running]) -> tuple[Amounts, Amounts, Amounts]:
        room = self._columns.matrix(node.allocatable for node in self._nodes)
        used, load = np.zeros_like(room), np.zeros((len(self._nodes), 2), dtype=np.int64)
        for group, rows, counts in running:
            used[rows] += self._columns.vector(group.shape.requests) * counts[:, None]
            load[rows] += np.array(weighed(group.shape.requests), dtype=np.int64) * counts[:, None]
        return room, used, load

    def _count(self, running: Iterable[_Running]) -> None:
        key_of, first, _, view, included, _, counted, totals = self.counters
        of_spread = [item.inclusion is not None for item in self._table.counted]
        for group, rows, counts in running:
            for number in self._counted_in(group.shape):
                if group.deleting and number < len(of_spread) and of_spread[number]:
                    continue
                domains = np.where(included[view[number], rows], self.bins[0][key_of[number], rows], -1)
                there = domains >= 0
                np.add.at(counted, first[number] + domains[there], counts[there])
                totals[number] += int(counts[there].sum())


def _shared(
    keys: Sequence[Hashable], make: Callable[[int], Sequence[int] | Numbers], width: int
) -> tuple[list[int], Numbers]:
    """By kind, the number of its row; and the rows, made once for all kinds with the same key. make: takes a kind."""
    first: dict[Hashable, int] = {}
    for kind, key in enumerate(keys):
        first.setdefault(key, kind)
    number = {key: row for row, key in enumerate(first)}
    rows = np.array([make(kind) for kind in first.values()], dtype=np.int64).reshape(len(first), width)
    return [number[key] for key in keys], rows


def _running(pods: Iterable[Pod], row_of: Mapping[str, int]) -> list[_Running]:
    found = []
    for group in Tally().count([pod for pod in pods if not pod.is_finished]):
        counts = {row_of[name]: count for name, count in group.nodes.items() if name in row_of}
        rows, amounts = np.array(list(counts), dtype=np.int64), np.array(list(counts.values()), dtype=np.int64)
        found.append((group, rows, amounts))
    return found


def _tables(kinds: int, *tables: Sequence[Sequence[tuple[int, ...]]]) -> RowArrays:
    """Spans and the rows of each table, those of one kind after the other."""
    spans = np.zeros((len(tables), kinds + 1), dtype=np.int64)
    arrays = []
    for number, (table, width) in enumerate(zip(tables, (7, 3, 2, 1), strict=True)):
        spans[number, 1:] = np.cumsum([len(of_kind) for of_kind in table])
        rows = [row for of_kind in table for row in of_kind]
        arrays.append(np.array(rows, dtype=np.int64).reshape(len(rows), width))
    rules, soft, attractions, counted = arrays
    return spans, rules, soft, attractions, counted[:, 0].copy()
