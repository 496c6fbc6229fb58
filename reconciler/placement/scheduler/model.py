"""kube-scheduler as a model: nodes, what runs on them, and where the default profile binds the pods that come.

The arrays are made once: nodes as rows, pods that are the same to kube-scheduler as kinds, rules as rows with counters. Which rows a pod has
is said by the plugins' files in `constraints/`. Then pods of the known kinds come in any order, and are taken back for another one. Left out
are volumes, preemption and ImageLocality, since the images on nodes are not known. What each container of a pod requests is not
known either (see `weighed`). Above 100 nodes kube-scheduler stops when it has found enough that are able. It looks with several threads at
once, so that which ones it finds is chance; the model looks at one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, zip_longest

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Node
from reconciler.model.pods import HostPort, Pod, PodShape
from reconciler.model.refs import by_key
from reconciler.model.requirements import Taint
from reconciler.placement.arrays import BOUND, Amounts, CounterArrays, Numbers, ResourceColumns
from reconciler.placement.batches import KnownNeeds, Needs
from reconciler.placement.cache import Tally
from reconciler.placement.constraints.domain_counters import EACH_NODE, TopologyRule
from reconciler.placement.constraints.node_rules import NodeAffinity, TaintToleration, ports_clash, tolerated
from reconciler.placement.constraints.pod_rules import AntiAffinityRule
from reconciler.placement.constraints.resources_fit import weighed
from reconciler.placement.constraints.topology import RuleTable
from reconciler.placement.nodes.existing import LocatedGroup
from reconciler.placement.requirements import LabelTable, Mask
from reconciler.placement.scheduler.walk import (
    PLAIN,
    RULES,
    BinArrays,
    Groups,
    KindArrays,
    RowArrays,
    ScratchArrays,
    Walk,
    compiled_walk,
)

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class PodKind:
    """Pods that are the same to kube-scheduler. by_default: whether the default spread constraints apply where they have none."""

    shape: PodShape
    by_default: bool = False


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
        self._takes_pods = np.array([node.ready and not node.deleting for node in nodes], dtype=np.bool_)
        self._cordoned = np.array([node.unschedulable for node in nodes], dtype=np.bool_)
        self._keys = {EACH_NODE: 0, HOSTNAME_LABEL: 1}
        self._ports: dict[tuple[HostPort, ...], int] = {}
        row_of = {node.name: row for row, node in enumerate(nodes)}
        groups = Tally().count([pod for pod in pods if not pod.is_finished])
        running = [LocatedGroup.of(group, row_of) for group in groups]
        for shape in (*(kind.shape for kind in kinds), *(group.shape for group in groups)):
            self._table.watch_owners(shape)
        needs = [self._needs.of(kind.shape) for kind in kinds]
        self.kinds = self._kind_arrays(needs)
        rules = [[*self._table.own_rules(item), *self._table.others_rules(item.shape)] for item in needs]
        soft = [
            self._table.soft_spread(item, by_default=kind.by_default) for item, kind in zip(needs, kinds, strict=True)
        ]
        drawn = [self._table.attractions(kind.shape) for kind in kinds]
        for kind in kinds:  # only now are all other counters known, so that these follow them
            if kind.shape.host_ports:
                self._ports.setdefault(kind.shape.host_ports, len(self._table.counted) + len(self._ports))
        rule_rows = [self._rule_rows(kind.shape, of_kind) for kind, of_kind in zip(kinds, rules, strict=True)]
        soft_rows = [[(item.counter, self._key(item.key), item.max_skew) for item in of_kind] for of_kind in soft]
        counted = [[(number,) for number in self._counted_in(kind.shape)] for kind in kinds]
        self.rows: RowArrays = _tables(len(kinds), rule_rows, soft_rows, drawn, counted)
        self.counters, domains = self._counter_arrays()
        self.bins: BinArrays = (domains, *self._amounts(running))
        self.scratch: ScratchArrays = (
            np.zeros(len(nodes), dtype=np.int64),
            np.zeros(len(nodes), dtype=np.int64),
            np.zeros(len(nodes), dtype=np.float64),
            np.zeros(self.counters[4].shape[1] + 1, dtype=np.int64),
        )
        self._count(running)

    def _key(self, key: str) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _kind_arrays(self, needs: Sequence[Needs]) -> KindArrays:
        shapes = [item.shape for item in needs]
        tolerations = {shape.tolerations for shape in shapes}
        avoided = {each: self._taints.avoided(each) for each in tolerations}
        liked = [self._node_affinity.liked(shape.preferred_node_terms) for shape in shapes]
        by_node = len(shapes), len(self._nodes)
        return (
            np.array([item.request for item in needs], dtype=np.int64).reshape(len(shapes), len(self._columns.names)),
            np.array([weighed(shape.requests) for shape in shapes], dtype=np.int64).reshape(len(shapes), 2),
            np.array([self._mask(item) for item in needs], dtype=np.bool_).reshape(by_node),
            np.array([avoided[shape.tolerations] for shape in shapes], dtype=np.int64).reshape(by_node),
            np.array(liked, dtype=np.int64).reshape(by_node),
            np.array([bool(shape.topology_spread) for shape in shapes], dtype=np.bool_),
        )

    def _mask(self, needs: Needs) -> Mask:
        """By node, whether the rules allow a pod that depend on the node alone."""
        tolerations = needs.shape.tolerations
        allowed = self._node_affinity.meeting(needs.terms) & self._taints.tolerating(tolerations) & self._takes_pods
        return allowed if tolerated((_CORDONED,), tolerations) else allowed & ~self._cordoned

    def _rule_rows(self, shape: PodShape, rules: Iterable[TopologyRule]) -> list[tuple[int, ...]]:
        """A pod's host ports keep it off nodes where some other pod has one of them."""
        if shape.host_ports:
            rules = [*rules, AntiAffinityRule(self._ports[shape.host_ports], EACH_NODE, counts_itself=True)]
        return [rule.row(rule.counter, self._key(rule.key)) for rule in rules]

    def _counted_in(self, shape: PodShape) -> list[int]:
        taking = [number for ports, number in self._ports.items() if ports_clash(shape.host_ports, ports)]
        return self._table.counts_of(shape) + taking

    def _counter_arrays(self) -> tuple[CounterArrays, Numbers]:
        """With the domains of all keys: keys × nodes, -1 where a node lacks the label."""
        counted, looking_at = self._table.counted, (self._labels, self._node_affinity, self._taints)
        keys = [*(self._key(item.key) for item in counted), *(self._key(EACH_NODE) for _ in self._ports)]
        found, sizes = zip(*(self._domains_of(key) for key in self._keys), strict=True)
        domains = np.array(found, dtype=np.int64).reshape(len(self._keys), len(self._nodes))
        columns = domains[keys]
        looked_at: dict[int, Mask] = {}
        for row, inclusion in zip(columns, (item.inclusion for item in counted), strict=False):
            if inclusion is not None:
                if id(inclusion) not in looked_at:
                    looked_at[id(inclusion)] = inclusion.looked_at(*looking_at)
                row[~looked_at[id(inclusion)]] = -1
        present = np.zeros((len(keys), max(sizes)), dtype=np.bool_)
        numbers, nodes = np.nonzero(columns >= 0)
        present[numbers, columns[numbers, nodes]] = True
        counts, width = np.zeros(present.shape, dtype=np.int64), np.array([sizes[key] for key in keys], dtype=np.int64)
        rows = np.array(keys, dtype=np.int64)
        return (rows, width, columns, present, counts, np.zeros(len(keys), dtype=np.int64)), domains

    def _domains_of(self, key: str) -> tuple[Numbers, int]:
        """The number of each node's domain, and how many there are."""
        if key == EACH_NODE:
            return np.arange(len(self._nodes), dtype=np.int64), len(self._nodes)
        codes, cells = self._labels.column(key)
        numbers = np.array([-1 if cell is None else code for code, cell in enumerate(cells)], dtype=np.int64)
        return (numbers[codes] if len(cells) else codes.astype(np.int64)), len(cells)

    def _amounts(self, running: Iterable[LocatedGroup]) -> tuple[Amounts, Amounts, Amounts]:
        room = self._columns.matrix(node.allocatable for node in self._nodes)
        used, load = np.zeros_like(room), np.zeros((len(self._nodes), 2), dtype=np.int64)
        for item in running:
            requests, counts = item.bound_group.shape.requests, item.counts[:, None]
            used[item.rows] += self._columns.vector(requests) * counts
            load[item.rows] += np.array(weighed(requests), dtype=np.int64) * counts
        return room, used, load

    def _count(self, running: Iterable[LocatedGroup]) -> None:
        _, _, columns, _, counted, totals = self.counters
        of_spread = [item.inclusion is not None for item in self._table.counted]
        for item in running:
            for number in self._counted_in(item.bound_group.shape):
                if item.bound_group.deleting and number < len(of_spread) and of_spread[number]:
                    continue
                domains = columns[number, item.rows]
                there = domains >= 0
                np.add.at(counted[number], domains[there], item.counts[there])
                totals[number] += int(item.counts[there].sum())


def _tables(kinds: int, *tables: Sequence[Sequence[tuple[int, ...]]]) -> RowArrays:
    """Spans and the rows of each table, those of one kind after the other."""
    spans = np.zeros((len(tables), kinds + 1), dtype=np.int64)
    arrays = []
    for number, (table, width) in enumerate(zip(tables, (BOUND + 1, 3, 2, 1), strict=True)):
        spans[number, 1:] = np.cumsum([len(of_kind) for of_kind in table])
        rows = [row for of_kind in table for row in of_kind]
        arrays.append(np.array(rows, dtype=np.int64).reshape(len(rows), width))
    rules, soft, attractions, counted = arrays
    return spans, rules, soft, attractions, counted[:, 0].copy()


WORTH_SCHEDULING = 100_000
"""Pods times nodes from which on compiled loops save more time than it takes to load them."""
_DEFAULTED = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds of owners whose pods kube-scheduler spreads by default."""
_FEW_NODES, _LEAST_PERCENTAGE = 100, 5
"""kube-scheduler's minFeasibleNodesToFind and minFeasibleNodesPercentageToFind."""


def kind_of(pod: Pod) -> PodKind:
    """The kind of a real pod."""
    return PodKind(pod.shape, pod.owner_kind in _DEFAULTED)


def queue_order(pod: Pod) -> tuple[int, datetime, str, str]:
    """The key that sorts waiting pods as kube-scheduler takes them: by priority, then by time (its plugin PrioritySort)."""
    return (-pod.priority, pod.created or datetime.min.replace(tzinfo=UTC), pod.namespace, pod.name)


class SchedulerModel:
    """nodes: by row, in the order in which kube-scheduler goes through them. kinds: of pods that may come, by number."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        kinds: Sequence[PodKind],
        namespaces: Mapping[str, Mapping[str, str]],
        *,
        sampling: bool = False,
    ) -> None:
        """pods: those that run; pending and finished ones are passed over. sampling: whether to look at a part of many nodes only."""
        self.nodes = _in_turn(nodes)
        self.kinds = tuple(kinds)
        self._arrays = SchedulerArrays(self.nodes, pods, self.kinds, namespaces)
        self._most = _nodes_to_find(len(self.nodes)) if sampling else len(self.nodes)
        self._even = np.arange(len(self.nodes), dtype=np.int64)
        self._journal: list[Numbers] = []

    def schedule(self, order: Sequence[int] | Numbers, lots: Numbers | None = None, *, again: bool = False) -> Numbers:
        """Binds a pod for each of these kinds, one after the other. Returns the row of each pod's node, -1 where it has to wait.

        lots: by row, all different; of nodes with equal scores, of which kube-scheduler takes any, the one with the lowest lot wins.
        again: whether pods that wait are tried again once others were bound."""
        asked = np.full((2, len(order)), -1, dtype=np.int64)
        asked[0] = order
        if len(self.nodes):
            walk = self._walk(len(order))
            lots = self._even if lots is None else lots
            if again:
                walk.settle(self._groups, asked, lots, self._most)
            else:
                walk.schedule(self._groups, asked, lots, self._most)
        self._journal.append(asked)
        nodes: Numbers = asked[1].copy()
        return nodes

    def always_bound(self, counts: Numbers) -> Mask:
        """By kind, whether its pods find room whatever comes before them. counts: by kind, how many pods come at most.

        A pod without rules between pods waits only if every node that would take it has become full, each in some resource. All pods
        that may come to these nodes cannot fill that many where the shares of them that nodes have free are more than there are
        resources in which any node could become full."""
        _, room, used, _ = self._arrays.bins
        asked, _, takes, _, _, _ = self._arrays.kinds
        rules = np.diff(self._arrays.rows[0][RULES])
        found = np.zeros(len(self.kinds), dtype=np.bool_)
        for kind in np.flatnonzero(rules == 0):
            free = (room - used)[takes[kind]] - asked[kind]
            others = asked.T @ (counts * takes[:, takes[kind]].any(axis=1)) - asked[kind]
            shares = np.where(others > 0, np.maximum(free + 1, 0) / np.maximum(others, 1), np.inf)
            shares[shares > 1] = np.inf
            filled = np.isfinite(shares).any(axis=0).sum()
            found[kind] = np.where((free < 0).any(axis=1), 0, shares.min(axis=1)).sum() > filled
        return found

    def worsen(self, pods: Numbers, lots: Numbers, targets: Mask, further: Numbers, tries: int, seed: int) -> int:
        """Changes an order for the worse, for one demand: see `walk.worsen`."""
        asked = np.full((2, len(further)), -1, dtype=np.int64)
        asked[0] = further
        walk = self._walk(tries * len(pods))
        return walk.worsen(self._groups, pods, lots, self._most, targets, asked, tries, seed)

    def take_back(self) -> None:
        """Takes back all pods that came since the model was made."""
        while self._journal:
            order = self._journal.pop()
            self._walk(order.shape[1]).take_back(self._groups, order)

    def able(self, kind: int) -> int:
        """How many nodes take a pod of this kind now."""
        return self._walk(1).filter_nodes(self._groups, kind, 0, len(self.nodes))[0] if self.nodes else 0

    @property
    def _groups(self) -> Groups:
        arrays = self._arrays
        return arrays.bins, arrays.counters, arrays.kinds, arrays.rows, arrays.scratch

    def _walk(self, pods: int) -> Walk:
        worth = pods * len(self.nodes) >= WORTH_SCHEDULING or compiled_walk.cache_info().currsize
        return compiled_walk() if worth else PLAIN


def _in_turn(nodes: Iterable[Node]) -> list[Node]:
    """One of each zone in turn, the oldest first, as in kube-scheduler's node tree."""
    order = sorted(nodes, key=lambda node: (node.created or datetime.min.replace(tzinfo=UTC), node.name))
    zones = by_key(((node.label(REGION_LABEL), node.label(ZONE_LABEL)), node) for node in order)
    return [node for node in chain.from_iterable(zip_longest(*zones.values())) if node is not None]


def _nodes_to_find(nodes: int) -> int:
    """How many able nodes are enough (kube-scheduler's numFeasibleNodesToFind)."""
    share = max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return nodes if nodes < _FEW_NODES else max(_FEW_NODES, nodes * share // 100)
