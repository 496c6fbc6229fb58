"""The embedded cluster's scheduler: binds pending pods where kube-scheduler would, as far as its model in `placement/scheduler` knows.

Of nodes with equal scores it takes the first. It ignores volumes and preemption. Driven by World.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.cluster.embedded.store import Body
from reconciler.cluster.embedded.world import World
from reconciler.model.nodes import Node
from reconciler.model.pods import DEFAULT_SCHEDULER, Pod
from reconciler.model.refs import ObjectRef
from reconciler.placement.scheduler.model import PodKind, SchedulerModel, kind_of, queue_order

MANAGER = "kube-scheduler"
_KINDS = {("", "Pod"), ("", "Node"), ("", "Namespace")}


class Scheduler:
    def __init__(self, world: World) -> None:
        self._world = world
        self._dirty = False
        self.unschedulable: tuple[Pod, ...] = ()
        """The pods that found no node in the last round, in the order of trying."""

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        del before, after
        self._dirty = self._dirty or (ref.group, ref.kind) in _KINDS

    def reconcile(self) -> None:
        if not self._dirty:
            return
        self._dirty = False
        view = self._world.views.view()
        waiting = sorted((pod for pod in view.pods if _is_waiting(pod)), key=queue_order)
        places = places_of(waiting, view.nodes, view.pods, view.namespaces) if waiting else []
        for pod, node in places:
            if node is not None:
                self._bind(pod, node.name)
        self.unschedulable = tuple(pod for pod, node in places if node is None)

    def _bind(self, pod: Pod, node: str) -> None:
        def bind(body: dict[str, Any]) -> None:
            body["spec"]["nodeName"] = node
            self._world.set_condition(body, "PodScheduled", "True")
            self._world.set_condition(body, "Ready", "True")
            body["status"]["phase"] = "Running"

        self._world.store.change(ObjectRef("", "Pod", pod.namespace, pod.name), bind, MANAGER)


def places_of(
    waiting: Sequence[Pod], nodes: Iterable[Node], pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]]
) -> list[tuple[Pod, Node | None]]:
    """Where kube-scheduler's model binds pods that come in this order; None for one that finds no room. pods: those that are there."""
    kinds: dict[PodKind, int] = {}
    order = [kinds.setdefault(kind_of(pod), len(kinds)) for pod in waiting]
    model = SchedulerModel(nodes, pods, list(kinds), namespaces)
    rows = model.schedule(order).tolist()
    return [(pod, model.nodes[row] if row >= 0 else None) for pod, row in zip(waiting, rows, strict=True)]


def _is_waiting(pod: Pod) -> bool:
    return (
        pod.node_name is None and not pod.gated and not pod.deleting and pod.shape.scheduler_name == DEFAULT_SCHEDULER
    )
