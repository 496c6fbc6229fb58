"""Buffers may point to any kind with a scale: the size of those that no watch covers.

Read through the scale subresource, as the HorizontalPodAutoscaler does, so that no right on the kind itself is needed.
Nothing watches them, but their pods are watched: when such a workload changes its size, a pass is made.
"""

from __future__ import annotations

from typing import Any

import msgspec

from reconciler.cluster.connection import NOT_FOUND, Connection
from reconciler.cluster.discovery import Discovery, Served
from reconciler.cluster.resources import BUFFERS, BY_KIND, CAPACITY_BUFFERS, Resource
from reconciler.cluster.view import ViewStore
from reconciler.manifests.declared import read_live
from reconciler.model.errors import Transient
from reconciler.model.refs import ObjectRef


class _ScaleSpec(msgspec.Struct):
    replicas: int = 0


class _ScaleStatus(msgspec.Struct):
    replicas: int | None = None
    selector: str = ""


class _ScaleWire(msgspec.Struct):
    """autoscaling/v1 Scale."""

    spec: _ScaleSpec = msgspec.field(default_factory=_ScaleSpec)
    status: _ScaleStatus = msgspec.field(default_factory=_ScaleStatus)


class Scales:
    """Keeps the scales that buffers in the store point to in the store as workloads without a pod template."""

    def __init__(self, connection: Connection, discovery: Discovery, store: ViewStore) -> None:
        self._connection = connection
        self._discovery = discovery
        self._store = store
        self._read: dict[ObjectRef, Resource] = {}

    def refresh(self) -> None:
        """Reads each again; one that cannot be read is a gap."""
        targets = self._targets()
        for ref in self._read.keys() - targets.keys():
            self._store.remove(self._read.pop(ref), ref.namespace, ref.name)
            self._store.set_gap(str(ref), "")
        for ref, served in targets.items():
            resource = Resource(ref.group, ref.kind, served.plural, served.versions, builtin=False)
            self._read[ref] = resource
            try:
                body = self._scale(ref)
            except Transient as error:
                self._store.set_gap(str(ref), f"the scale of {ref} cannot be read: {error.message}")
                continue
            self._store.set_gap(str(ref), "")
            if body is None:
                self._store.remove(resource, ref.namespace, ref.name)
            else:
                self._store.put(resource, body)

    def _targets(self) -> dict[ObjectRef, Served]:
        buffers = [
            item
            for ref, item in self._store.objects().items()
            if (ref.group, ref.kind) in {CAPACITY_BUFFERS.key, BUFFERS.key}
        ]
        found: dict[ObjectRef, Served] = {}
        for buffer in read_live(buffers).buffers:
            if buffer.target is None or (buffer.target.group, buffer.target.kind) in BY_KIND:
                continue
            served = self._discovery.find(buffer.target.group, buffer.target.kind)
            if served is not None and served.scalable and served.namespaced:
                target = buffer.target
                found[ObjectRef(target.group, target.kind, buffer.ref.namespace, target.name)] = served
        return dict(sorted(found.items()))

    def _scale(self, ref: ObjectRef) -> dict[str, Any] | None:
        """The object as far as its scale tells; None when it is not there."""
        answer = self._connection.request("GET", f"{self._discovery.object_path(ref)}/scale", resource="scale")
        if answer.status == NOT_FOUND:
            return None
        if not answer.ok:
            raise Transient(answer.failure().message)
        try:
            scale = msgspec.json.decode(answer.data, type=_ScaleWire)
        except msgspec.MsgspecError as error:
            raise Transient(f"it is no Scale ({error})") from error
        return {
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "spec": {"replicas": scale.spec.replicas},
            "status": {"replicas": scale.status.replicas, "selector": scale.status.selector},
        }
