"""The virtual pod that a chunk is: a workload's pod shape made ready to be placed without ever existing. Used by buffers."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.buffers import Buffer
from reconciler.model.nodes import CAPACITY_TYPE_LABEL
from reconciler.model.pods import PodShape

BUFFER_LABEL = "autoscaling.x-k8s.io/buffer"
BUFFER_NAMESPACE_LABEL = "autoscaling.x-k8s.io/buffer-namespace"
BUFFER_CAPACITY_TYPE = "buffer"


def virtual_pod(shape: PodShape, buffer: Buffer) -> PodShape:
    """The shape with seed 001's labels, in the buffer's namespace, and without what a virtual pod cannot have.

    Volume claims belong to pods that exist; a priority class would give rank over pods that do (seed 001: lowest
    priority). A shape carries no node name in the first place.
    """
    labels = dict(shape.labels) | {
        CAPACITY_TYPE_LABEL: BUFFER_CAPACITY_TYPE,
        BUFFER_LABEL: buffer.ref.name,
        BUFFER_NAMESPACE_LABEL: buffer.ref.namespace,
    }
    return replace(
        shape,
        namespace=buffer.ref.namespace,
        labels=tuple(sorted(labels.items())),
        volume_claims=(),
        priority_class_name="",
    )
