"""Pods that take room or wait for it, and their shapes. A pod that is resized in place counts for what it asks for now.

Computing a shape costs far more than comparing two specs. Equal pods that share one shape object take less memory, and can be
grouped by identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from operator import attrgetter
from sys import intern
from typing import Any

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.protobuf import Message, object_of, time_of
from reconciler.cluster.decoding.wire import PodWire
from reconciler.cluster.resources import PODS
from reconciler.manifests.pods.pod_shape import shape_of
from reconciler.manifests.pods.pod_spec_wire import PodSpecWire
from reconciler.model.nodes import DO_NOT_DISRUPT
from reconciler.model.pods import FINISHED_PHASES, Pod, PodShape
from reconciler.model.provisioning_requests import CLASS_ANNOTATIONS, CONSUME_ANNOTATIONS

_SPEC = attrgetter(
    *(
        name
        for name in PodSpecWire.__struct_fields__
        # These fields differ from pod to pod without changing the shape. Pods with volumes that matter have no likeness.
        if name not in {"node_name", "priority", "scheduling_gates", "volumes"}
    )
)
_IN_COMMON: dict[str, Callable[[Pod, Any], None]] = {item.name: vars(Pod)[item.name].__set__ for item in fields(Pod)}
"""How each field of a Pod is written that replicas have in common: all but the four that are a pod's own."""
_Written = list[tuple[Callable[[Pod, Any], None], Any]]
_OWN = tuple(_IN_COMMON.pop(each) for each in ("name", "uid", "node_name", "created"))
_SHARED = tuple(item.name for item in fields(PodShape) if item.compare and item.name != "requests")
_MOST = 20_000
_MOST_REPLICATED = 2_000
"""Pods of which replicas are known. They follow each other in a list."""


class ShapePool:
    """Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._siblings: dict[tuple[str, str, str], tuple[object, PodShape]] = {}
        self._shapes: dict[PodShape, PodShape] = {}
        self._parts: dict[Any, Any] = {}
        self._replicas: dict[bytes, _Written | None] = {}

    def pod_of(self, message: Message) -> Pod | None:
        """A pod from protobuf; None as from `pod_of`. Raises `Invalid`.

        Replicas differ in few fields. Without these their bytes are equal, and what they have in common is read once. The message is
        used up.
        """
        metadata, spec = message.metadata, message.spec
        node_name = spec.node_name
        if not node_name:
            return pod_of(object_of(PODS, message), self)
        for volume in spec.volumes:  # loops, since they run for every pod of the cluster
            if volume.inline_2.ByteSize():  # it has a claim, which is its own
                return pod_of(object_of(PODS, message), self)
        name, uid, created = metadata.name, metadata.uid, time_of(metadata.creation_timestamp)
        if _OF_PODS.search(b"".join(metadata.annotations[:])) is None:
            metadata.ClearField("annotations")
        for own in ("name", "uid", "creation_timestamp", "resource_version"):
            metadata.ClearField(own)
        for own in ("node_name", "volumes"):
            spec.ClearField(own)
        common = message.SerializeToString()
        if common not in self._replicas:
            if len(self._replicas) > _MOST_REPLICATED:
                self._replicas.clear()
            spec.node_name = node_name
            first = pod_of(object_of(PODS, message), self)
            self._replicas[common] = (
                None if first is None else [(write, getattr(first, each)) for each, write in _IN_COMMON.items()]
            )
        written = self._replicas[common]
        return None if written is None else _replica(written, name, uid, intern(node_name), created)

    def shape_of(self, pod: PodWire, owner_kind: str, owner_name: str) -> PodShape:
        """The pod's shape, the same object for equal shapes. Raises `Invalid`."""
        metadata, spec = pod.metadata, pod.spec
        namespace = metadata.namespace or ""
        key = (namespace, owner_kind, owner_name)
        likeness = _likeness(pod) if owner_name else None
        sibling = self._siblings.get(key) if likeness is not None else None
        if sibling is not None and sibling[0] == likeness:
            return sibling[1]
        shape = shape_of(spec, namespace=namespace, labels=metadata.labels or {}, pod_name=metadata.name)
        if max(len(self._shapes), len(self._siblings)) > _MOST:
            self._shapes.clear()  # most are of pods that are long gone
            self._siblings.clear()
            self._parts.clear()
        known = self._shapes.get(shape)
        if known is None:
            known = self._with_shared_parts(shape)
            self._shapes[known] = known
        shape = known
        if likeness is not None:
            self._siblings[key] = (likeness, shape)
        return shape

    def _with_shared_parts(self, shape: PodShape) -> PodShape:
        """The shape with parts shared with others. Many shapes differ only in requests, and share all other parts."""
        parts: dict[str, Any] = {name: part for name in _SHARED if (part := getattr(shape, name))}
        return replace(shape, **{name: self._parts.setdefault(part, part) for name, part in parts.items()})


def _replica(common: _Written, *own: object) -> Pod:
    """A pod with this in common with others. Pod's own __init__ takes twice as long."""
    pod = Pod.__new__(Pod)
    for write, value in common:
        write(pod, value)
    for write, value in zip(_OWN, own, strict=True):
        write(pod, value)
    return pod


def _likeness(pod: PodWire) -> object | None:
    """What is equal only for pods of equal shape; None for a pod whose volumes are its own."""
    if _claims_volumes(pod.spec):
        return None
    return pod.metadata.labels, _SPEC(pod.spec)


def _claims_volumes(spec: PodSpecWire) -> bool:
    for volume in spec.volumes or ():  # a loop, since it runs for every pod of the cluster
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return True
    return False


_POD_ANNOTATIONS = frozenset({DO_NOT_DISRUPT, *CONSUME_ANNOTATIONS, *CLASS_ANNOTATIONS})
_OF_PODS = re.compile("|".join(map(re.escape, sorted(_POD_ANNOTATIONS))).encode())


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
        annotations=()
        if _POD_ANNOTATIONS.isdisjoint(annotations)
        else tuple(sorted(item for item in annotations.items() if item[0] in _POD_ANNOTATIONS)),
    )
