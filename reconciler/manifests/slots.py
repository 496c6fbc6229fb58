"""The fields of `Declared` that hold typed values, one for each kind, with the identity and order of their values."""

from __future__ import annotations

from typing import Any

from reconciler.model.nodes import NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.workloads import PriorityClass

SLOTS = (
    "buffers",
    "node_pools",
    "workloads",
    "priority_classes",
    "provisioning_requests",
    "provisioning_classes",
    "schedules",
    "node_overlays",
)


def ref_of(value: Any) -> ObjectRef:
    """The identity of a value of one of these fields."""
    match value:
        case NodePool():
            return ObjectRef("karpenter.sh", "NodePool", "", value.name)
        case PriorityClass():
            return ObjectRef("scheduling.k8s.io", "PriorityClass", "", value.name)
        case _:
            ref: ObjectRef = value.ref
            return ref


def place_in_order(value: Any) -> tuple[str, str, str, str]:
    """The sort key of the values of a field."""
    ref = ref_of(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)
