"""The embedded cluster's scheduler: binds pending pods where kube-scheduler would, as far as its model in `placement/scheduler` knows.

Of nodes with equal scores it takes the first. It ignores volumes and preemption. Driven by World.
"""

from __future__ import annotations

from typing import Any

from reconciler.cluster.embedded.store import Body, stamp
from reconciler.cluster.embedded.world import World, condition, set_condition
from reconciler.model.pods import DEFAULT_SCHEDULER, Pod
from reconciler.model.refs import ObjectRef
from reconciler.placement.scheduler.model import PodKind, SchedulerModel, kind_of, queue_order

MANAGER = "kube-scheduler"
_KINDS = {("", "Pod"), ("", "Node"), ("", "Namespace")}


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
        waiting = sorted((pod for pod in view.pods if _is_waiting(pod)), key=queue_order)
        if not waiting:
            self._unschedulable = ()
            return
        kinds: dict[PodKind, int] = {}
        order = [kinds.setdefault(kind_of(pod), len(kinds)) for pod in waiting]
        model = SchedulerModel(view.nodes, view.pods, list(kinds), view.namespaces)
        rows = list(zip(waiting, model.schedule(order).tolist(), strict=True))
        for pod, row in rows:
            if row >= 0:
                self._bind(pod, model.nodes[row].name)
        self._unschedulable = tuple(pod for pod, row in rows if row < 0)

    def _bind(self, pod: Pod, node: str) -> None:
        time = stamp(self._world.now)

        def bind(body: dict[str, Any]) -> None:
            body["spec"]["nodeName"] = node
            set_condition(body, condition("PodScheduled", "True", "", "", time))
            set_condition(body, condition("Ready", "True", "", "", time))
            body["status"]["phase"] = "Running"

        self._world.store.change(_ref(pod), bind, MANAGER)


def _ref(pod: Pod) -> ObjectRef:
    return ObjectRef("", "Pod", pod.namespace, pod.name)


def _is_waiting(pod: Pod) -> bool:
    return (
        pod.node_name is None and not pod.gated and not pod.deleting and pod.shape.scheduler_name == DEFAULT_SCHEDULER
    )
