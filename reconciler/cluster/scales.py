"""The sizes of workloads that no watch covers, since buffers may refer to any kind with a scale.

They are read through the scale subresource, as by the HorizontalPodAutoscaler, so that no permission on the kind itself is needed.
They are not watched, but their pods are: when such a workload changes its size, a pass is made.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reconciler.cluster.connection import FORBIDDEN, NOT_FOUND, Connection, RefusedError
from reconciler.cluster.decoding.wire import NamespaceWire, ref_of
from reconciler.cluster.discovery import Discovery, Served
from reconciler.cluster.resources import BUFFERS, BY_KIND, CAPACITY_BUFFERS, Resource, scaled_kind
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import NAMES_ONLY, pages_of
from reconciler.manifests.repository.declared import read_live
from reconciler.model.errors import Transient
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest


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
    """Keeps the scales that buffers refer to in the store, as workloads without a pod template."""

    def __init__(self, connection: Connection, discovery: Discovery, store: ViewStore) -> None:
        self._connection = connection
        self._discovery = discovery
        self._store = store
        self._read: dict[ObjectRef, Resource] = {}

    def refresh(self) -> None:
        """Reads each scale again. One that cannot be read is a gap."""
        targets = self._targets()
        for ref in self._read.keys() - targets.keys():
            self._store.remove(self._read.pop(ref), ref.namespace, ref.name)
            self._store.set_gap(_subject(ref), "")
        for ref, served in targets.items():
            resource = scaled_kind(ref.group, ref.kind, served.plural, served.versions)
            self._read[ref] = resource
            try:
                body = self._scale(ref, resource)
            except Transient as error:
                self._store.set_gap(_subject(ref), f"cannot be read: {error.message}")
                continue
            self._store.set_gap(_subject(ref), "")
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

    def every(self) -> Iterator[tuple[Resource, Manifest]]:
        """Every object of every kind with a scale that no watch covers, for a snapshot.

        If a kind may not be listed, only those that buffers refer to. Raises `Transient` without an answer, or if scales may not be
        read.
        """
        targets = self._targets()
        for key, served in self._discovery.scalable().items():
            if key in BY_KIND:
                continue
            resource = scaled_kind(*key, served.plural, served.versions)
            listed = self._names(resource)
            refs = [ref for ref in targets if (ref.group, ref.kind) == key] if listed is None else listed
            for ref in sorted(refs):
                body = self._scale(ref, resource, odd_is_none=True)
                if body is not None:
                    yield resource, body

    def _names(self, resource: Resource) -> list[ObjectRef] | None:
        """All objects of a kind; None if they may not be listed."""
        path = self._discovery.path_of(resource)
        if path is None:
            return []
        try:
            pages = pages_of(self._connection, path, resource, accept=NAMES_ONLY)
            items = [item for page in pages for item in page.items or ()]
        except RefusedError as error:
            if error.answer.status == FORBIDDEN:
                return None
            raise
        return [ref_of(resource, msgspec.json.decode(item, type=NamespaceWire).metadata) for item in items]

    def _scale(self, ref: ObjectRef, resource: Resource, *, odd_is_none: bool = False) -> Manifest | None:
        """The object as known from its scale; None if it does not exist. Raises `Transient`.

        odd_is_none: None also if the server cannot make a scale of it, as of one without the field for its size.
        """
        path = self._discovery.object_path(ref)
        if path is None:
            return None
        answer = self._connection.request("GET", f"{path}/scale", resource="scale")
        if answer.status == NOT_FOUND or (odd_is_none and not answer.ok and answer.status != FORBIDDEN):
            return None
        if not answer.ok:
            raise RefusedError(answer)
        try:
            scale = msgspec.json.decode(answer.data, type=_ScaleWire)
        except msgspec.MsgspecError as error:
            raise Transient(f"it is no Scale ({error})") from error
        return scale_document(resource, ref, scale.spec.replicas, scale.status.replicas, scale.status.selector)


def _subject(ref: ObjectRef) -> str:
    return f"the scale of {ref}"


def scale_document(resource: Resource, ref: ObjectRef, replicas: int, observed: int | None, selector: str) -> Manifest:
    """An object of which only the scale is known. selector: as text."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "spec": {"replicas": replicas},
        "status": {"replicas": observed, "selector": selector},
    }
