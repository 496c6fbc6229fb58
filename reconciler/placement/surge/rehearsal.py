"""Rehearses that buffers are used: kube-scheduler's model binds the pods of their workloads in many orders.

In the orders that are tried first, pods with many places to go come before those with few. Ties are broken in the worst way there. Then
come shuffled ones, by fixed seeds. Volumes, devices and preemption are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.buffers import Fulfilment, Recreation, virtual_labels
from reconciler.model.demand import REQUEST_KIND, SPARE_KIND, Demand
from reconciler.model.nodes import SCARCE_TAINT, Node
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.surge import Binding, Wait
from reconciler.placement.amounts import Numbers
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.arrays import PodKind
from reconciler.placement.scheduler.model import WORTH_SCHEDULING, SchedulerModel
from reconciler.placement.scheduler.walk import compiled_walk
from reconciler.placement.surge.standing import running_pods, standing_nodes

MOST_ORDERS = 50
MOST_STEPS = 10_000_000
"""Pods times nodes of all orders together: what compiled loops go through in half a second."""
LEAST_ORDERS = 4
_ALONE = 4
"""Orders in which a demand is tried alone: its pods are alike, so only ties differ."""
_SAMPLED_FROM = 100
"""Nodes from which on kube-scheduler looks at a part of them."""


@dataclass(frozen=True, slots=True)
class _Coming:
    """Pods of one demand. kinds: a number for each pod. rows: of the nodes that hold its chunks, with how many."""

    demand: ObjectRef
    kinds: Numbers
    rows: Counter[int]


@dataclass(frozen=True, slots=True)
class _Tried:
    """One order. coming: by pod, the number of its demand. waiting: by number of a demand, how many of its pods wait."""

    coming: Numbers
    nodes: Numbers
    waiting: Counter[int]


class Rehearsal:
    """names: of the planned nodes. scarce: nodes with the taint of scarce room."""

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        names: Sequence[str],
        scarce: Collection[str] = (),
    ) -> None:
        standing = standing_nodes(problem, placement, names)
        nodes = [_marked(item.node, scarce=item.node.name in scarce) for item in standing]
        demands = {item.ref: item for item in problem.demands if _takes_part(item)}
        self._doubtful = {item.ref for item in demands.values() if may_fail_alone(item)}
        kinds: dict[PodKind, int] = {}
        held: dict[ObjectRef, Counter[tuple[int, str]]] = {ref: Counter() for ref in sorted(demands)}
        for item in standing:
            for holding in item.holdings:
                if holding.demand in demands:
                    kind = _kind(demands[holding.demand], holding.group)
                    held[holding.demand][kinds.setdefault(kind, len(kinds)), item.node.name] += holding.count
        pods = running_pods(problem, standing)
        sampling = len(nodes) >= _SAMPLED_FROM
        self._model = SchedulerModel(nodes, pods, list(kinds), problem.view.namespaces, sampling=sampling)
        if sum(sum(counts.values()) for counts in held.values()) * len(nodes) * MOST_ORDERS >= WORTH_SCHEDULING:
            compiled_walk()
        row_of = {node.name: row for row, node in enumerate(self._model.nodes)}
        self._coming = [
            _Coming(
                ref,
                np.repeat([kind for kind, _ in counts], list(counts.values())),
                Counter(row_of[name] for (_, name), count in counts.items() for _ in range(count)),
            )
            for ref, counts in held.items()
            if counts
        ]

    def waits(self, *, together: bool = True) -> tuple[Wait, ...]:
        """The worst that was found for each demand: alone, and together with others where more pods wait then."""
        found: list[Wait] = []
        numbers = range(len(self._coming))
        alone = {
            number: self._worst(number, [self._tried([number], seed) for seed in range(_ALONE)])
            for number in numbers
            if self._coming[number].demand in self._doubtful
        }
        in_company = list(self._together()) if together and len(self._coming) > 1 else []
        for number in numbers:
            least = 0
            if (tried := alone.get(number)) is not None:
                least = tried.waiting[number]
                found.append(self._wait(number, tried, alone=True))
            tried = self._worst(number, in_company)
            if tried is not None and tried.waiting[number] > least:
                found.append(self._shortest(number, tried))
        return tuple(found)

    def room_of(self, demands: Collection[ObjectRef]) -> frozenset[str]:
        """The names of nodes that hold chunks of these demands."""
        rows = {row for item in self._coming if item.demand in demands for row in item.rows}
        return frozenset(self._model.nodes[row].name for row in rows)

    def _together(self) -> Iterator[_Tried]:
        """Begins with the worst orders: of each demand, that it comes last, those with most places first."""
        pods = sum(len(item.kinds) for item in self._coming)
        steps = max(1, pods * len(self._model.nodes))
        most = max(LEAST_ORDERS, min(MOST_ORDERS, MOST_STEPS // steps))
        by_places = sorted(range(len(self._coming)), key=self._places, reverse=True)
        lasts = list(reversed(by_places))[: max(1, most // 2)]
        for last in lasts:
            yield self._tried([*(item for item in by_places if item != last), last], seed=None)
        for seed in range(most - len(lasts)):
            yield self._tried(by_places, seed, mixed=True)

    def _places(self, number: int) -> int:
        """How many nodes take a pod of the demand while none has come."""
        return max(self._model.able(kind) for kind in set(self._coming[number].kinds.tolist()))

    def _tried(self, order: Sequence[int], seed: int | None, *, mixed: bool = False) -> _Tried:
        """seed: of lots and shuffling. None: ties are broken in favour of nodes that hold chunks of who comes last."""
        coming = np.repeat(np.array(order), [len(self._coming[number].kinds) for number in order])
        kinds = np.concatenate([self._coming[number].kinds for number in order])
        lots = shuffled(len(self._model.nodes), seed or 0)
        if seed is None:
            held = self._coming[order[-1]].rows
            ranks = np.array([row not in held for row in range(len(lots))])
            lots = np.argsort(np.lexsort((lots, ranks)))
        if mixed:
            turns = shuffled(len(coming), seed or 0)
            coming, kinds = coming[turns], kinds[turns]
        nodes = self._model.schedule(kinds, lots)
        self._retry(kinds, nodes, lots)
        self._model.take_back()
        return _Tried(coming, nodes, Counter(coming[nodes < 0].tolist()))

    def _retry(self, kinds: Numbers, nodes: Numbers, lots: Numbers) -> None:
        """Pods that wait are tried again once others were bound: some of those they want beside them may have come only then."""
        waiting = np.flatnonzero(nodes < 0)
        while len(waiting) and len(waiting) < len(kinds):
            nodes[waiting] = self._model.schedule(kinds[waiting], lots)
            still = waiting[nodes[waiting] < 0]
            if len(still) == len(waiting):
                return
            waiting = still

    def _worst(self, number: int, all_tried: Iterable[_Tried]) -> _Tried | None:
        worst = max(all_tried, key=lambda tried: tried.waiting[number], default=None)
        return worst if worst is not None and worst.waiting[number] else None

    def _shortest(self, number: int, tried: _Tried) -> Wait:
        """The worst order, or one of two demands that is as bad."""
        wait = self._wait(number, tried, alone=False)
        refs = [item.demand for item in self._coming]
        for taker in wait.takers[:3]:
            pair = self._tried([refs.index(taker), number], seed=None)
            if pair.waiting[number] >= wait.waiting:
                return replace(self._wait(number, pair, alone=False), before=taker)
        return wait

    def _wait(self, number: int, tried: _Tried, *, alone: bool) -> Wait:
        own = self._coming[number]
        nodes = [node.name for node in self._model.nodes]
        return Wait(
            own.demand,
            waiting=tried.waiting[number],
            promised=len(own.kinds),
            alone=alone,
            takers=() if alone else self._takers(number, tried),
            before=None,
            bindings=tuple(
                Binding(self._coming[coming].demand, nodes[row] if row >= 0 else "")
                for coming, row in zip(tried.coming.tolist(), tried.nodes.tolist(), strict=True)
            ),
        )

    def _takers(self, number: int, tried: _Tried) -> tuple[ObjectRef, ...]:
        """Whose pods are on the demand's nodes beyond what they hold chunks for there, those with most of them first."""
        room = self._coming[number].rows
        beyond: Counter[ObjectRef] = Counter()
        for (coming, row), count in Counter(zip(tried.coming.tolist(), tried.nodes.tolist(), strict=True)).items():
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


def may_fail_alone(demand: Demand) -> bool:
    """Pods that are alike and under no rule between pods find the room that their chunks have, whichever of it comes first."""
    shapes = [group.shape for group in demand.groups]
    return len(shapes) > 1 or any(
        shape.topology_spread or shape.pod_affinity or shape.pod_anti_affinity or shape.host_ports for shape in shapes
    )


def _takes_part(demand: Demand) -> bool:
    """Balloon pods give way by preemption, which is not modelled; a KeepMinimum buffer does not promise that its room is free."""
    others = demand.is_pending_pod or demand.ref.kind == SPARE_KIND or demand.fulfilment == Fulfilment.BALLOON
    return not others and demand.recreation is not Recreation.KEEP_MINIMUM


def _kind(demand: Demand, group: int) -> PodKind:
    """A pod of the workload that the demand is for, without what tells a virtual pod."""
    shape = demand.groups[group].shape
    if demand.ref.kind == REQUEST_KIND:
        return PodKind(shape)
    virtual = virtual_labels(demand.ref).items()
    labels = tuple(item for item in shape.labels if item not in virtual)
    return PodKind(replace(shape, labels=labels), by_default=True)


def _marked(node: Node, *, scarce: bool) -> Node:
    others = tuple(taint for taint in node.taints if taint != SCARCE_TAINT)
    return replace(node, taints=(*others, SCARCE_TAINT) if scarce else others)
