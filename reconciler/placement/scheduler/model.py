"""kube-scheduler as a model: nodes, what runs on them, and where the default profile binds the pods that come.

The arrays are made once; then pods of the known kinds come in any order, and are taken back for another one. Left out are volumes,
devices, preemption and ImageLocality, since the images on nodes are not known. What each container of a pod requests is not known either
(see `weighed`). Above 100 nodes kube-scheduler stops when it has found enough that are able. It looks with several threads at once, so
that which ones it finds is chance; the model looks at one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, zip_longest

import numpy as np

from reconciler.model.nodes import REGION_LABEL, ZONE_LABEL, Node
from reconciler.model.pods import Pod
from reconciler.placement.amounts import Numbers
from reconciler.placement.requirements import Mask
from reconciler.placement.scheduler.arrays import PodKind, SchedulerArrays
from reconciler.placement.scheduler.walk import (
    ABLE,
    CAUSES,
    FIT,
    MASK,
    PLAIN,
    RULES,
    Groups,
    Walk,
    compiled_walk,
)

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
                walk.schedule(*self._groups, asked, lots, self._most)
        self._journal.append(asked)
        nodes: Numbers = asked[1].copy()
        return nodes

    def always_bound(self, counts: Numbers) -> Mask:
        """By kind, whether its pods find room whatever comes before them. counts: by kind, how many pods come at most.

        A pod without rules between pods waits only if every node that would take it has become full, each in some resource. All pods
        that may come to these nodes cannot fill that many where the shares of them that nodes have free are more than there are
        resources in which any node could become full."""
        _, room, used, _ = self._arrays.bins
        looks, requests, _, masks, _, _ = self._arrays.kinds
        rules = np.diff(self._arrays.rows[0][RULES])
        asked = requests[looks[:, FIT]]
        takes = masks[looks[:, MASK]] == ABLE
        found = np.zeros(len(self.kinds), dtype=np.bool_)
        for kind in np.flatnonzero(rules == 0):
            free = (room - used)[takes[kind]] - asked[kind]
            others = asked.T @ (counts * takes[:, takes[kind]].any(axis=1)) - asked[kind]
            shares = np.where(others > 0, np.maximum(free + 1, 0) / np.maximum(others, 1), np.inf)
            shares[shares > 1] = np.inf
            filled = np.isfinite(shares).any(axis=0).sum()
            found[kind] = np.where((free < 0).any(axis=1), 0, shares.min(axis=1)).sum() > filled
        return found

    def worsen(self, pods: Numbers, lots: Numbers, target: int, further: Numbers, tries: int, seed: int) -> int:
        """Changes an order for the worse, for one demand: see `walk.worsen`. pods: two rows, the kind and the demand of each."""
        asked = np.full((2, len(further)), -1, dtype=np.int64)
        asked[0] = further
        walk = self._walk(tries * pods.shape[1])
        return walk.worsen(self._groups, pods, lots, self._most, target, asked, tries, seed)

    def bind(self, kind: int, row: int) -> None:
        """Puts one pod on a node, whatever the rules say."""
        self._journal.append(np.array([[kind], [row]], dtype=np.int64))
        PLAIN.bind(*self._groups[:4], kind, row, 1)

    def take_back(self) -> None:
        """Takes back all pods that came since the model was made."""
        while self._journal:
            order = self._journal.pop()
            self._walk(order.shape[1]).take_back(*self._groups[:4], order)

    def best(self, kind: int) -> list[int]:
        """The rows with the highest score for the next pod of this kind: kube-scheduler takes any of them. [] if it has to wait."""
        found = self.able(kind)
        if not found:
            return []
        PLAIN.score_nodes(*self._groups, kind, found)
        _, able, totals, _, _ = self._arrays.scratch
        scores = totals[able[:found]]
        return sorted(able[:found][scores == scores.max()].tolist())

    def causes(self, kind: int) -> Counter[str]:
        """Why nodes do not take a pod of this kind, in words, and how many."""
        if not self.nodes:
            return Counter()
        self.able(kind)
        return Counter(CAUSES[verdict] for verdict in self._arrays.scratch[0].tolist() if verdict != ABLE)

    def able(self, kind: int) -> int:
        """How many nodes take a pod of this kind now."""
        return self._walk(1).filter_nodes(*self._groups, kind, 0, len(self.nodes))[0] if self.nodes else 0

    @property
    def _groups(self) -> Groups:
        arrays = self._arrays
        return arrays.bins, arrays.counters, arrays.kinds, arrays.rows, arrays.scratch

    def _walk(self, pods: int) -> Walk:
        worth = pods * len(self.nodes) >= WORTH_SCHEDULING or compiled_walk.cache_info().currsize
        return compiled_walk() if worth else PLAIN


def _in_turn(nodes: Iterable[Node]) -> list[Node]:
    """One of each zone in turn, the oldest first, as in kube-scheduler's node tree."""
    zones: dict[tuple[str | None, str | None], list[Node]] = {}
    for node in sorted(nodes, key=lambda node: (node.created or datetime.min.replace(tzinfo=UTC), node.name)):
        zones.setdefault((node.label(REGION_LABEL), node.label(ZONE_LABEL)), []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*zones.values())) if node is not None]


def _nodes_to_find(nodes: int) -> int:
    """How many able nodes are enough (kube-scheduler's numFeasibleNodesToFind)."""
    share = max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return nodes if nodes < _FEW_NODES else max(_FEW_NODES, nodes * share // 100)
