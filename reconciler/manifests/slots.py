"""The fields of `Declared` that hold typed values, one for each kind, and how the values in them are told apart and sorted."""

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
    """What a value of one of these fields says of itself."""
    match value:
        case NodePool():
            return ObjectRef("karpenter.sh", "NodePool", "", value.name)
        case PriorityClass():
            return ObjectRef("scheduling.k8s.io", "PriorityClass", "", value.name)
        case _:
            ref: ObjectRef = value.ref
            return ref


def place_in_order(value: Any) -> tuple[str, str, str, str]:
    """By which the values of a field are sorted."""
    ref = ref_of(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)
