"""Rehearses that buffers are used: kube-scheduler's model binds the pods of their workloads in many orders.

In the orders that are tried first, pods with many places to go come before those with few. Ties are broken in the worst way there. Then
come shuffled ones, by fixed seeds. For demands whose pods all find room so far, an order is changed pod by pod as long as that makes
room scarcer for them. Preemption is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from reconciler.model.buffers import virtual_labels
from reconciler.model.demand import REQUEST_KIND, Demand
from reconciler.model.nodes import SCARCE_TAINTS, Node
from reconciler.model.placement import Binding, Placement, Wait
from reconciler.model.refs import ObjectRef
from reconciler.placement.arrays import Numbers
from reconciler.placement.constraints.volumes import with_volumes
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.model import WORTH_SCHEDULING, PodKind, SchedulerModel
from reconciler.placement.scheduler.walk import compiled_walk
from reconciler.placement.surge.standing import running_pods, standing_nodes

MOST_ORDERS = 50
MOST_TRIES = 4_000
"""Changes of an order for each demand, in the search for one in which its pods wait."""
MOST_STEPS = 20_000_000
"""Pods times nodes of all orders together: what compiled loops go through in a second."""
LEAST_ORDERS = 4
_STARTS, _WORTH_STARTING = 4, 20
"""Orders from which the search begins, and changes that each must be worth."""
_FURTHER = 8
"""Further pods by which the search sees how near an order is to letting one wait."""
_ALONE, _ALONE_TRIES = 4, 200
"""Orders in which a demand is tried alone, and changes of one: its pods are alike, so only ties differ."""
_SAMPLED_FROM = 100
"""Nodes from which on kube-scheduler looks at a part of them."""


@dataclass(frozen=True, slots=True)
class _Coming:
    """Pods of one demand. pods: the kind of each. rows: of the nodes that hold its chunks, with how many."""

    demand: ObjectRef
    pods: Numbers
    rows: Counter[int]


@dataclass(frozen=True, slots=True)
class _Tried:
    """One order. pods: the kind of each. waiting: by number of a demand, how many of its pods wait."""

    pods: Numbers
    nodes: Numbers
    waiting: Counter[int]


class Rehearsal:
    """names: of the planned nodes. scarce: by node, how many taints of scarce room. steps: pods times nodes that were gone through so far.
    nodes, running: as they will stand, with the pods that run there.

    What was searched is kept: to ask again costs nothing."""

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        names: Sequence[str],
        scarce: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.placement = placement
        self.steps = 0
        self._searched: dict[tuple[int, int], list[_Tried]] = {}
        if any(demand.has_claims for demand in problem.demands):
            problem, _ = with_volumes(problem)
        standing = standing_nodes(problem, placement, names)
        nodes = [_marked(item.node, scarce.get(item.node.name, 0)) for item in standing]
        demands = {item.ref: item for item in problem.demands if item.is_rehearsed}
        self._doubtful = {item.ref for item in demands.values() if item.may_fail_alone}
        kinds: dict[tuple[ObjectRef, int], int] = {}
        held: dict[ObjectRef, Counter[tuple[int, str]]] = {ref: Counter() for ref in sorted(demands)}
        for item in standing:
            for holding in item.holdings:
                if holding.demand in demands:
                    kind = kinds.setdefault((holding.demand, holding.group), len(kinds))
                    held[holding.demand][kind, item.node.name] += holding.count
        self._kinds = list(kinds)
        """Demand and group of each kind of pod."""
        self.running = running_pods(problem, standing)
        sampling = len(nodes) >= _SAMPLED_FROM
        pod_kinds = [_kind(demands[ref], group) for ref, group in kinds]
        self._model = SchedulerModel(nodes, self.running, pod_kinds, problem.view.namespaces, sampling=sampling)
        self.nodes = self._model.nodes
        row_of = {node.name: row for row, node in enumerate(self.nodes)}
        self._coming = [
            _Coming(
                ref,
                np.repeat([kind for kind, _ in counts], list(counts.values())),
                Counter(row_of[name] for (_, name), count in counts.items() for _ in range(count)),
            )
            for ref, counts in held.items()
            if counts
        ]
        numbers = {item.demand: number for number, item in enumerate(self._coming)}
        self._number = np.array([numbers[ref] for ref, _ in kinds], dtype=np.int64)
        """By kind, the number of its demand."""
        counts = np.bincount(self._pods(range(len(self._coming))), minlength=len(kinds))
        sure = self._model.always_bound(counts)
        self._unsure = [number for number, item in enumerate(self._coming) if not sure[item.pods].all()]
        if self._unsure and (counts.sum() + _FURTHER) * len(nodes) * MOST_TRIES >= WORTH_SCHEDULING:
            compiled_walk()

    def waits(
        self, *, together: bool = True, known: Iterable[Sequence[ObjectRef]] = (), patience: int = MOST_TRIES
    ) -> tuple[Wait, ...]:
        """The worst that was found for each demand: alone, and together with others where more pods wait then.

        known: orders to be tried too, as the demands of their pods. patience: changes of an order for each demand that has not waited."""
        found: list[Wait] = []
        numbers = range(len(self._coming))
        alone = self._alone
        in_company = list(self._likely) if together and self._unsure and len(self._coming) > 1 else []
        if in_company:
            in_company += [self._tried(*self._again(order)) for order in known]
            in_company += self._worsened(in_company, patience)
        for number in numbers:
            least = 0
            if (tried := alone.get(number)) is not None:
                least = tried.waiting[number]
                found.append(self._wait(number, tried, alone=True))
            tried = self._worst(number, in_company)
            if tried is not None and tried.waiting[number] > least:
                found.append(self._shortest(number, tried))
        return tuple(found)

    def strain(self, known: Iterable[Sequence[ObjectRef]] = ()) -> int:
        """How many pods wait in all orders that come to mind, and in those that are known: the fewer, the nearer to firm."""
        found = [*self._likely, *(self._tried(*self._again(order)) for order in known)] if len(self._coming) > 1 else []
        alone = ((each.waiting[number], len(self._coming[number].pods)) for number, each in self._alone.items() if each)
        return sum(each.waiting.total() for each in found) + sum(count for count, most in alone if count < most)

    def orders(self) -> tuple[tuple[Binding, ...], ...]:
        """Some in which everybody comes, last those with the fewest places to go."""
        numbers = self._by_places[-LEAST_ORDERS:]
        return tuple(self._bindings(self._tried(self._last(number), self._lots(0, number))) for number in numbers)

    def room_of(self, demands: Collection[ObjectRef]) -> frozenset[str]:
        """The names of nodes that hold chunks of these demands."""
        rows = {row for item in self._coming if item.demand in demands for row in item.rows}
        return frozenset(self.nodes[row].name for row in rows)

    @cached_property
    def _alone(self) -> dict[int, _Tried | None]:
        """The worst order of each demand that may not find its room alone."""
        found = {}
        for number, item in enumerate(self._coming):
            if item.demand in self._doubtful:
                tried = [self._tried(self._pods([number]), self._lots(seed)) for seed in range(_ALONE)]
                if not any(each.waiting for each in tried):
                    tries = min(_ALONE_TRIES, self._tries() // _STARTS)
                    tried += self._worse(number, self._pods([number]), self._lots(0), tries)
                found[number] = self._worst(number, tried)
        return found

    @cached_property
    def _likely(self) -> list[_Tried]:
        """The orders that are likely the worst: of each demand, that it comes last, those with most places first. Then shuffled ones."""
        most = max(LEAST_ORDERS, min(MOST_ORDERS, self._tries()))
        lasts = [number for number in reversed(self._by_places) if number in self._unsure][: max(1, most // 2)]
        found = [self._tried(self._last(number), self._lots(0, number)) for number in lasts]
        return found + [self._tried(*self._shuffled(seed)) for seed in range(most - len(lasts))]

    def _worsened(self, tried: Sequence[_Tried], patience: int) -> list[_Tried]:
        """Worse orders for those who have not had to wait."""
        found: list[_Tried] = []
        tries = min(patience, self._tries() // max(1, len(self._unsure)))
        for number in self._unsure:
            if not any(item.waiting[number] for item in (*tried, *found)):
                key = (number, tries)
                if key not in self._searched:
                    self._searched[key] = self._search(number, tries)
                found += self._searched[key]
        return found

    def _search(self, number: int, tries: int) -> list[_Tried]:
        begun = min(_STARTS, tries // _WORTH_STARTING)
        starts = [(self._last(number), self._lots(0, number)), *map(self._shuffled, range(1, _STARTS))]
        return next(
            (worse for pods, lots in starts[:begun] if (worse := self._worse(number, pods, lots, tries // begun))), []
        )

    def _worse(self, number: int, pods: Numbers, lots: Numbers, tries: int) -> list[_Tried]:
        """An order in which pods of the demand wait, if changes of this one lead there."""
        further = np.repeat(self._coming[number].pods[:1], _FURTHER)
        self.steps += tries * len(pods) * len(self.nodes)
        strain = self._model.worsen(pods, lots, self._number == number, further, tries, seed=number + 1)
        return [self._tried(pods, lots)] if strain > 0 else []

    def _tries(self) -> int:
        """How many orders of everybody are tried at most."""
        pods = sum(len(item.pods) for item in self._coming)
        return MOST_STEPS // max(1, pods * len(self.nodes))

    @cached_property
    def _by_places(self) -> list[int]:
        return sorted(range(len(self._coming)), key=self._places, reverse=True)

    def _places(self, number: int) -> int:
        """How many nodes take a pod of the demand while none has come."""
        return max(self._model.able(kind) for kind in set(self._coming[number].pods.tolist()))

    def _pods(self, order: Iterable[int]) -> Numbers:
        """Those of one demand after the other."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *(self._coming[number].pods for number in order)])

    def _last(self, number: int) -> Numbers:
        return self._pods([*(item for item in self._by_places if item != number), number])

    def _shuffled(self, seed: int) -> tuple[Numbers, Numbers]:
        pods = self._pods(self._by_places)
        return pods[shuffled(len(pods), seed)], self._lots(seed)

    def _again(self, order: Sequence[ObjectRef]) -> tuple[Numbers, Numbers]:
        """An order that was found for another placement, with the last of its demands as the one that comes last."""
        number_of = {item.demand: number for number, item in enumerate(self._coming)}
        numbers = [number_of[ref] for ref in order if ref in number_of]
        waiting = [iter(item.pods.tolist()) for item in self._coming]
        pods = [kind for number in numbers if (kind := next(waiting[number], None)) is not None]
        return np.array(pods, dtype=np.int64), self._lots(0, numbers[-1] if numbers else None)

    def _lots(self, seed: int, last: int | None = None) -> Numbers:
        """last: the demand that comes last. Nodes that hold its chunks win ties then."""
        lots = shuffled(len(self.nodes), seed)
        if last is None:
            return lots
        ranks = np.array([row not in self._coming[last].rows for row in range(len(lots))])
        return np.argsort(np.lexsort((lots, ranks)))

    def _tried(self, pods: Numbers, lots: Numbers) -> _Tried:
        self.steps += len(pods) * len(self.nodes)
        nodes = self._model.schedule(pods, lots, again=True)
        self._model.take_back()
        return _Tried(pods, nodes, Counter(self._number[pods[nodes < 0]].tolist()))

    def _worst(self, number: int, all_tried: Iterable[_Tried]) -> _Tried | None:
        worst = max(all_tried, key=lambda tried: tried.waiting[number], default=None)
        return worst if worst is not None and worst.waiting[number] else None

    def _shortest(self, number: int, tried: _Tried) -> Wait:
        """The worst order, or one of two demands that is as bad."""
        wait = self._wait(number, tried, alone=False)
        refs = [item.demand for item in self._coming]
        for taker in wait.takers[:3]:
            pair = self._tried(self._pods([refs.index(taker), number]), self._lots(0, number))
            if pair.waiting[number] >= wait.waiting:
                return replace(self._wait(number, pair, alone=False), before=taker)
        return wait

    def _wait(self, number: int, tried: _Tried, *, alone: bool) -> Wait:
        own = self._coming[number]
        return Wait(
            own.demand,
            waiting=tried.waiting[number],
            promised=len(own.pods),
            alone=alone,
            takers=() if alone else self._takers(number, tried),
            before=None,
            bindings=self._bindings(tried),
        )

    def _bindings(self, tried: _Tried) -> tuple[Binding, ...]:
        names = [*(node.name for node in self.nodes), ""]
        places = zip(tried.pods.tolist(), tried.nodes.tolist(), strict=True)
        return tuple(Binding(self._kinds[kind][0], self._kinds[kind][1], names[row]) for kind, row in places)

    def _takers(self, number: int, tried: _Tried) -> tuple[ObjectRef, ...]:
        """Whose pods are on the demand's nodes beyond what they hold chunks for there, those with most of them first."""
        room = self._coming[number].rows
        beyond: Counter[ObjectRef] = Counter()
        for (coming, row), count in Counter(
            zip(self._number[tried.pods].tolist(), tried.nodes.tolist(), strict=True)
        ).items():
            other = self._coming[coming]
            if coming != number and row in room and count > other.rows[row]:
                beyond[other.demand] += count - other.rows[row]
        return tuple(sorted(beyond, key=lambda ref: (-beyond[ref], ref)))


def shuffled(count: int, seed: int) -> Numbers:
    """The numbers below `count` in an order that only the seed decides: sorted by what splitmix64 makes of them."""
    keys = np.arange(count, dtype=np.uint64) + np.uint64(seed * count + 1)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return np.argsort(keys ^ (keys >> np.uint64(31)), kind="stable").astype(np.int64)


def _kind(demand: Demand, group: int) -> PodKind:
    """A pod of the workload that the demand is for, without what tells a virtual pod."""
    shape = demand.groups[group].shape
    if demand.ref.kind == REQUEST_KIND:
        return PodKind(shape)
    virtual = virtual_labels(demand.ref).items()
    labels = tuple(item for item in shape.labels if item not in virtual)
    return PodKind(replace(shape, labels=labels), by_default=True)


def _marked(node: Node, marks: int) -> Node:
    others = (taint for taint in node.taints if taint not in SCARCE_TAINTS)
    return replace(node, taints=(*others, *SCARCE_TAINTS[:marks]))
