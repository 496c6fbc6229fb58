"""Pods that take room or wait for it. Finished pods are dropped, except those that used a provisioning request."""

from __future__ import annotations

from sys import intern

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.shapes import ShapePool
from reconciler.model.nodes import DO_NOT_DISRUPT
from reconciler.model.pods import FINISHED_PHASES, Pod
from reconciler.model.provisioning_requests import CLASS_ANNOTATIONS, CONSUME_ANNOTATIONS

_POD_ANNOTATIONS = frozenset(
    {
        DO_NOT_DISRUPT,
        *CONSUME_ANNOTATIONS,
        *CLASS_ANNOTATIONS,
    }
)


def pod_of(pod: wire.PodWire, shapes: ShapePool) -> Pod | None:
    """None for a pod that does not matter. Strings that many pods have in common are kept once."""
    metadata, spec = pod.metadata, pod.spec
    phase = pod.status.phase or "Pending"
    annotations = metadata.annotations or {}
    if phase in FINISHED_PHASES and not (spec.node_name and any(key in annotations for key in CONSUME_ANNOTATIONS)):
        return None
    owner = wire.controller_of(metadata)
    owner_kind, owner_name = intern(owner.kind), intern(owner.name)
    return Pod(
        namespace=intern(metadata.namespace or ""),
        name=metadata.name,
        shape=shapes.shape_of(pod, owner_kind, owner_name),
        node_name=intern(spec.node_name) if spec.node_name else None,
        nominated_node="" if spec.node_name else pod.status.nominated_node_name or "",
        uid=metadata.uid,
        phase=intern(phase),
        priority=spec.priority or 0,
        created=metadata.creation_timestamp,
        deleting=metadata.deletion_timestamp is not None,
        gated=bool(spec.scheduling_gates),
        owner_kind=owner_kind,
        owner_name=owner_name,
        annotations=tuple(sorted(item for item in annotations.items() if item[0] in _POD_ANNOTATIONS))
        if annotations
        else (),
    )
