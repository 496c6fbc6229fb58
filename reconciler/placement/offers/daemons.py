"""What the pods of DaemonSets take on a node before any chunk does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.workloads import DaemonSet
from reconciler.placement.amounts import ResourceColumns
from reconciler.placement.constraints.taint_toleration import tolerated
from reconciler.placement.needs import Needs, needs_of
from reconciler.placement.requirements import Requirements

_TOLERATED_BY_ALL = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ADDED = tuple(Toleration(key, "Exists", "", effect) for key, effect in _TOLERATED_BY_ALL)
"""The daemon set controller adds these to every daemon pod."""

READY_LABELS = Requirements.labels([(REGISTERED_LABEL, "true"), (INITIALIZED_LABEL, "true")])
"""A node gets these once it is up. A DaemonSet may select nodes by them."""


@dataclass(frozen=True, slots=True)
class DaemonPod:
    """One DaemonSet with what its pods need."""

    namespace: str
    name: str
    needs: Needs

    def tolerates(self, taints: Sequence[Taint]) -> bool:
        return tolerated(taints, (*self.needs.shape.tolerations, *_ADDED))


def daemons_of(daemon_sets: Sequence[DaemonSet], columns: ResourceColumns) -> tuple[DaemonPod, ...]:
    return tuple(
        DaemonPod(item.namespace, item.name, needs_of(item.shape, columns.vector(item.shape.requests)))
        for item in sorted(daemon_sets, key=lambda item: (item.namespace, item.name))
    )
