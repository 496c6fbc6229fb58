"""Balloon pods: pods of low priority that keep a node's room until a pod of more importance pushes them out.

What keeps capacity where an autoscaler knows neither NodeClaims nor CapacityBuffers: whatever runs, every autoscaler counts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from reconciler.model.pods import Pod
from reconciler.model.refs import ObjectRef

DEPLOYMENT_KIND = "Deployment"
BALLOON_LABEL = "headroom.dev/balloon"
"""On the Deployment and on its pods; the value is the Deployment's name."""
BALLOON_PRIORITY_CLASS = "headroom-balloon"
BALLOON_PRIORITY = -10
"""Below every pod without a class. Cluster Autoscaler makes no nodes for pods with a priority below -10
(`--expendable-pods-priority-cutoff`)."""
_LONGEST_LABEL = 63
_DIGITS = 8


def balloon_ref(buffer: ObjectRef) -> ObjectRef:
    """The Deployment of a buffer's balloon pods. Its name is a label's value too, and so must not be longer than one."""
    name = f"balloon-{buffer.kind.lower()}-{buffer.name}"
    if len(name) > _LONGEST_LABEL:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
        name = f"{name[: _LONGEST_LABEL - _DIGITS - 1]}-{digest}"
    return ObjectRef("apps", DEPLOYMENT_KIND, buffer.namespace, name)


def balloon_of(pod: Pod) -> ObjectRef | None:
    """The Deployment that a balloon pod belongs to; None for every other pod."""
    name = next((value for key, value in pod.shape.labels if key == BALLOON_LABEL), None)
    return None if name is None else ObjectRef("apps", DEPLOYMENT_KIND, pod.namespace, name)


def standing_balloons(pods: Iterable[Pod]) -> Counter[ObjectRef]:
    """Balloon pods that have a node and stay, by Deployment."""
    found = (balloon_of(pod) for pod in pods if pod.node_name is not None and not pod.deleting)
    return Counter(ref for ref in found if ref is not None)
