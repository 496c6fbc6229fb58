"""Balloon pods that are about to be deleted: their room belongs to the buffer, whoever keeps it next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from reconciler.model.buffers import Fulfilment, balloon_of, balloon_ref
from reconciler.model.demand import Demand
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView


def leaving_balloons(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """Balloon Deployments that this pass deletes if they exist: placeholders or an autoscaler keep their buffers now. An autoscaler counts
    once it reports the buffer as provisioned."""
    return frozenset(balloon_ref(demand.ref) for demand in demands if demand.desired is not None and _is_let_go(demand))


def without_balloons(view: ClusterView, leaving: Collection[ObjectRef]) -> ClusterView:
    """The view without their pods, so that chunks can be placed in that room. The same object if there are none."""
    pods = tuple(pod for pod in view.pods if balloon_of(pod) not in leaving)
    return view if len(pods) == len(view.pods) else replace(view, pods=pods)


def without_waiting_balloons(
    demands: Sequence[Demand], view: ClusterView, leaving: Collection[ObjectRef]
) -> tuple[Demand, ...]:
    """Leaves out their pending pods: a pod that is about to be deleted needs no room."""
    gone = {(pod.namespace, pod.name) for pod in view.pods if balloon_of(pod) in leaving}
    return tuple(
        demand for demand in demands if not demand.is_pending_pod or (demand.ref.namespace, demand.ref.name) not in gone
    )


def _is_let_go(demand: Demand) -> bool:
    if demand.fulfilment == Fulfilment.NATIVE:
        return demand.autoscaler is not None and demand.autoscaler.reports
    return demand.fulfilment == Fulfilment.PLACEHOLDER and not demand.is_pending_pod
