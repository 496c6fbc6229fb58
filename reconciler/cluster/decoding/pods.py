"""Pods that take room or wait for it. Finished pods are dropped, except those that used a provisioning request."""

from __future__ import annotations

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
    metadata, spec = pod.metadata, pod.spec
    phase = pod.status.phase or "Pending"
    annotations = metadata.annotations or {}
    if phase in FINISHED_PHASES and not (spec.node_name and any(key in annotations for key in CONSUME_ANNOTATIONS)):
        return None
    owner = wire.controller_of(metadata)
    return Pod(
        namespace=metadata.namespace or "",
        name=metadata.name,
        shape=shapes.shape_of(pod, owner.kind, owner.name),
        node_name=spec.node_name or None,
        nominated_node="" if spec.node_name else pod.status.nominated_node_name or "",
        uid=metadata.uid,
        phase=phase,
        priority=spec.priority or 0,
        created=metadata.creation_timestamp,
        deleting=metadata.deletion_timestamp is not None,
        gated=bool(spec.scheduling_gates),
        owner_kind=owner.kind,
        owner_name=owner.name,
        annotations=tuple(sorted(item for item in annotations.items() if item[0] in _POD_ANNOTATIONS))
        if annotations
        else (),
    )
