"""Balloon pods: pods of low priority that keep a node's room until a pod of higher priority preempts them.

They keep capacity where an autoscaler knows neither NodeClaims nor CapacityBuffers, since every autoscaler counts running pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reconciler.model.demand import POD_KIND
from reconciler.model.label_values import label_value
from reconciler.model.pods import Pod
from reconciler.model.refs import ObjectRef

DEPLOYMENT_KIND = "Deployment"
BALLOON_LABEL = "headroom.dev/balloon"
"""On the Deployment and on its pods; the value is the Deployment's name."""
BALLOON_PRIORITY_CLASS = "headroom-balloon"
BALLOON_PRIORITY = -10
"""Below every pod without a class. Cluster Autoscaler makes no nodes for pods with a priority below -10
(`--expendable-pods-priority-cutoff`)."""
_DIGITS = 8


def balloon_ref(buffer: ObjectRef) -> ObjectRef:
    """The Deployment of a buffer's balloon pods. Its name is also a label's value, which limits its length."""
    name = label_value(f"balloon-{buffer.kind.lower()}-{buffer.name}", digits=_DIGITS)
    return ObjectRef("apps", DEPLOYMENT_KIND, buffer.namespace, name)


def balloon_of(pod: Pod) -> ObjectRef | None:
    """The Deployment that a balloon pod belongs to; None for every other pod. The priority class is checked first: it is cheap."""
    if pod.shape.priority_class_name != BALLOON_PRIORITY_CLASS:
        return None
    name = next((value for key, value in pod.shape.labels if key == BALLOON_LABEL), None)
    return None if name is None else ObjectRef("apps", DEPLOYMENT_KIND, pod.namespace, name)


def waiting_balloons(pods: Iterable[Pod]) -> dict[ObjectRef, tuple[ObjectRef, ...]]:
    """Balloon pods that have no node yet, by Deployment."""
    found: dict[ObjectRef, list[ObjectRef]] = {}
    for pod in pods:
        ref = balloon_of(pod) if pod.node_name is None and not pod.deleting else None
        if ref is not None:
            found.setdefault(ref, []).append(ObjectRef("", POD_KIND, pod.namespace, pod.name))
    return {ref: tuple(sorted(own)) for ref, own in found.items()}


def standing_balloons(pods: Iterable[Pod]) -> Counter[ObjectRef]:
    """How many balloon pods have a node and are not being deleted, by Deployment."""
    found = (balloon_of(pod) for pod in pods if pod.node_name is not None and not pod.deleting)
    return Counter(ref for ref in found if ref is not None)
