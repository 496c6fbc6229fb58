"""Workloads that buffers point to, and daemon sets. Decoded by manifests and cluster; read by demand and placement."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import LabelSelector


@dataclass(frozen=True, slots=True)
class Workload:
    """Anything with a scale, or a PodTemplate (replicas None). shape None: it has no pod template of its own, so that the
    newest pod matching `selector` gives the shape.

    replicas: `spec.replicas` as written, None when absent; observed_replicas: `status.replicas`; replicas_manager: the
    field manager that owns `spec.replicas` in the cluster when that is not headroom; generation: metadata.generation.
    """

    ref: ObjectRef
    shape: PodShape | None
    replicas: int | None = None
    observed_replicas: int | None = None
    selector: LabelSelector | None = None
    replicas_manager: str | None = None
    generation: int | None = None
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet and the shape of its pods, of which each fitting node gets one."""

    namespace: str
    name: str
    shape: PodShape


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. value: the priority of its pods; global_default: also of pods that name no class."""

    name: str
    value: int
    global_default: bool = False
    position: SourcePosition | None = None
