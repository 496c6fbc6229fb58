"""The embedded cluster's scheduler: binds pending pods to nodes, the emptiest that fits first. Driven by World.

It follows the rules that decide where pods may go: requests, selectors, taints, host ports, hard topology spread, required affinity
and anti-affinity between pods. Of preferences it knows only the taint PreferNoSchedule. It ignores volumes and preemption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any

from reconciler.cluster.embedded.matching import selects, tolerates
from reconciler.cluster.embedded.store import Body, stamp
from reconciler.cluster.embedded.topology import Neighbours
from reconciler.cluster.embedded.world import World, condition, set_condition
from reconciler.model.nodes import Node
from reconciler.model.pods import DEFAULT_SCHEDULER, Pod, PodShape
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.model.refs import ObjectRef
from reconciler.ports import Event

MANAGER = "kube-scheduler"
_KINDS = {("", "Pod"), ("", "Node"), ("", "Namespace")}


@dataclass(slots=True)
class _Room:
    """A node and what its pods leave free."""

    node: Node
    free: Resources
    pods: list[Pod] = field(default_factory=list)

    @property
    def load(self) -> tuple[bool, float, str]:
        """The sort key: nodes with a PreferNoSchedule taint last, as that score outweighs all others; how full the node is; its name."""
        shares = [
            1 - self.free.get(name) / total for name in (CPU, MEMORY) if (total := self.node.allocatable.get(name))
        ]
        avoided = any(taint.effect == "PreferNoSchedule" for taint in self.node.taints)
        return (avoided, sum(shares) / len(shares) if shares else 1.0, self.node.name)


class Scheduler:
    def __init__(self, world: World) -> None:
        self._world = world
        self._dirty = False
        self._unschedulable: tuple[Pod, ...] = ()

    @property
    def unschedulable(self) -> tuple[Pod, ...]:
        """The pods that found no node in the last round, in the order of trying."""
        return self._unschedulable

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        del before, after
        self._dirty = self._dirty or (ref.group, ref.kind) in _KINDS

    def reconcile(self) -> None:
        if not self._dirty:
            return
        self._dirty = False
        view = self._world.views.view()
        waiting = [pod for pod in view.pods if _is_waiting(pod)]
        if not waiting:
            self._unschedulable = ()
            return
        search = _Search(_rooms(view.nodes, view.pods), Neighbours(view.nodes, view.pods, view.namespaces))
        unschedulable = []
        for pod in sorted(waiting, key=_turn):
            room = search.take(pod)
            if room is None:
                unschedulable.append(pod)
            else:
                self._bind(pod, room.node.name)
        self._tell(unschedulable)
        self._unschedulable = tuple(unschedulable)

    def _bind(self, pod: Pod, node: str) -> None:
        time = stamp(self._world.now)

        def bind(body: dict[str, Any]) -> None:
            body["spec"]["nodeName"] = node
            set_condition(body, condition("PodScheduled", "True", "", "", time))
            set_condition(body, condition("Ready", "True", "", "", time))
            body["status"]["phase"] = "Running"

        self._world.store.change(_ref(pod), bind, MANAGER)

    def _tell(self, unschedulable: Iterable[Pod]) -> None:
        known = {(pod.namespace, pod.name, pod.uid) for pod in self._unschedulable}
        for pod in unschedulable:
            if (pod.namespace, pod.name, pod.uid) not in known:
                self._world.record(Event(_ref(pod), "Warning", "FailedScheduling", "no node has room for the pod"))


def _ref(pod: Pod) -> ObjectRef:
    return ObjectRef("", "Pod", pod.namespace, pod.name)


def _is_waiting(pod: Pod) -> bool:
    return (
        pod.node_name is None and not pod.gated and not pod.deleting and pod.shape.scheduler_name == DEFAULT_SCHEDULER
    )


def _turn(pod: Pod) -> tuple[int, str, str, str]:
    return (-pod.priority, str(pod.created or ""), pod.namespace, pod.name)


def _rooms(nodes: Iterable[Node], pods: Iterable[Pod]) -> list[_Room]:
    """The rooms of the nodes that take pods, by name."""
    rooms = {
        node.name: _Room(node, node.allocatable)
        for node in nodes
        if node.ready and not node.deleting and not node.unschedulable
    }
    for pod in pods:
        room = rooms.get(pod.node_name or "")
        if room is not None:
            room.pods.append(pod)
    for room in rooms.values():
        room.free -= Resources.total(pod.shape.requests for pod in room.pods)
    return list(rooms.values())


def _may_be_on(shape: PodShape, node: Node) -> bool:
    return tolerates(shape, node.taints) and selects(shape, dict(node.labels), node.name)


class _Search:
    """One round's search for rooms. Within a round rooms only fill up, so what did not fit once will not fit later.

    Shapes are compared by identity. Equal shapes are one object in a view, and hashing them would cost more than the rest.
    """

    def __init__(self, rooms: list[_Room], neighbours: Neighbours) -> None:
        self._rooms = rooms
        self._neighbours = neighbours
        self._emptiest: dict[int, list[tuple[tuple[bool, float, str], _Room]]] = {}

    def take(self, pod: Pod) -> _Room | None:
        """Puts the pod into the emptiest room that it may be in; returns that room."""
        shape = pod.shape
        if id(shape) not in self._emptiest:
            self._emptiest[id(shape)] = [(room.load, room) for room in self._rooms if _may_be_on(shape, room.node)]
            heapify(self._emptiest[id(shape)])
        judge = self._neighbours.judge(pod)
        simple = judge is None and not shape.host_ports
        room = self._first(shape) if simple else self._best(shape, judge)
        if room is not None:
            room.free -= shape.requests
            room.pods.append(pod)
            self._neighbours.add(pod, room.node)
        return room

    def _first(self, shape: PodShape) -> _Room | None:
        """The first room that fits a pod without rules between pods. A load that has grown is queued again."""
        heap = self._emptiest[id(shape)]
        while heap:
            noted, room = heap[0]
            if not shape.requests.fits(room.free):
                heappop(heap)
            elif noted != room.load:
                heapreplace(heap, (room.load, room))
            else:
                return room
        return None

    def _best(self, shape: PodShape, judge: Callable[[Node], bool] | None) -> _Room | None:
        fitting = (
            room
            for _, room in self._emptiest[id(shape)]
            if shape.requests.fits(room.free)
            and not _ports_taken(shape, room.pods)
            and (judge is None or judge(room.node))
        )
        return min(fitting, key=lambda room: room.load, default=None)


def _ports_taken(shape: PodShape, pods: Iterable[Pod]) -> bool:
    """Whether the same port and protocol is taken on the same address, or where either takes every address."""
    return any(
        mine.port == other.port
        and mine.protocol == other.protocol
        and (mine.address == other.address or "0.0.0.0" in (mine.address, other.address))  # noqa: S104 - Kubernetes' "all"
        for mine in shape.host_ports
        for pod in pods
        for other in pod.shape.host_ports
    )
