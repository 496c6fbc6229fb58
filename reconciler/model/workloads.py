"""Workloads that buffers refer to, DaemonSets and priority classes."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import LabelSelector


@dataclass(frozen=True, slots=True)
class Workload:
    """Anything with a scale subresource, or a PodTemplate."""

    ref: ObjectRef
    shape: PodShape | None
    """None if it has no pod template. The newest pod that matches `selector` then gives the shape."""
    replicas: int | None = None
    """`spec.replicas` as written; None if absent, and for a PodTemplate."""
    observed_replicas: int | None = None
    """`status.replicas`."""
    selector: LabelSelector | None = None
    replicas_manager: str | None = None
    """The field manager other than headroom that owns `spec.replicas` in the cluster."""
    generation: int | None = None
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet with the shape of its pods, one of which runs on each node that fits."""

    namespace: str
    name: str
    shape: PodShape


@dataclass(frozen=True, slots=True)
class QueuedWorkload:
    """What Kueue queues as one, such as a Job. It makes the ProvisioningRequests of the Workload, in its order of priority."""

    namespace: str
    name: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. value: the priority of its pods; global_default: also of pods that name no class."""

    name: str
    value: int
    global_default: bool = False
    position: SourcePosition | None = None
