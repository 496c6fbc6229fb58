"""From API objects to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern
from typing import Any, NamedTuple

import msgspec

from reconciler.cluster.apply import InventoryRecord, records_of
from reconciler.cluster.decoding import protobuf, wire
from reconciler.cluster.decoding.nodes import DECODERS as NODE_DECODERS
from reconciler.cluster.decoding.nodes import NodeValue
from reconciler.cluster.decoding.pods import ShapePool, pod_of
from reconciler.cluster.decoding.storage import DECODERS as STORAGE_DECODERS
from reconciler.cluster.decoding.storage import StorageValue
from reconciler.cluster.decoding.wire import ref_of
from reconciler.cluster.decoding.workloads import DECODERS as WORKLOAD_DECODERS
from reconciler.cluster.decoding.workloads import (
    WorkloadValue,
    field_managers,
    scaled_workload_of,
    scaler_of,
    status_writes,
    workload_of,
)
from reconciler.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, NODE_POOLS, PODS, Resource
from reconciler.manifests.kind import Origin
from reconciler.manifests.node_pool import read as read_node_pool
from reconciler.model.buffers import BALLOON_LABEL
from reconciler.model.errors import Invalid
from reconciler.model.pods import Pod, Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject

Body = Mapping[str, Any] | bytes | msgspec.Raw | protobuf.Message
"""An API object: plain JSON values, its JSON text, or an item of a list in protobuf."""


_JSON = (bytes, msgspec.Raw, Mapping)
_DEPLOYMENT, _NODE_POOL = DEPLOYMENTS.key, NODE_POOLS.key
_LONGEST = 200
"""Characters of an error's text."""
Value = NodeValue | Pod | Workload | WorkloadValue | LiveObject | InventoryRecord | StorageValue


class Decoded(NamedTuple):
    """value: None if the object does not matter (a finished pod) or cannot be read; in the latter case `problem` says why. A value
    with a problem is an existing object that is compared with what is declared, but cannot be used otherwise.
    """

    namespace: str
    name: str
    value: Value | None = None
    problem: str = ""


def decode(resource: Resource, body: Body, shapes: ShapePool | None = None) -> Decoded:
    """Decodes one object. Never raises, so that one malformed object does not affect the others. shapes: shared by pods."""
    pool = shapes or ShapePool()
    if not isinstance(body, _JSON):
        return _decoded_message(resource, body, pool)
    key = resource.key
    data = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    decoder, read = _reader_of(resource)
    try:
        document = decoder.decode(data)
        value = pod_of(document, pool) if read is None else read(resource, document, data)
    except Exception as error:  # noqa: BLE001 - it concerns this object alone
        return _unreadable(resource, data, _why(error))
    metadata: wire.MetadataWire = document.metadata
    if key == _DEPLOYMENT and _BALLOON_LABEL in bytes(data):
        value = _balloon(resource, document, data) or value
    problem = _pool_problem(value) if key == _NODE_POOL and isinstance(value, LiveObject) else ""
    return Decoded(intern(metadata.namespace or ""), metadata.name, value, problem)


def workload_in(resource: Resource, body: Mapping[str, Any]) -> Workload | None:
    """The workload that an object is, also one of balloon pods; None for a ReplicaSet that a Deployment keeps for rollbacks.

    Raises `Invalid` and `MsgspecError`.
    """
    data = msgspec.json.encode(body)
    decoder, read = _reader_of(resource)
    assert read is not None
    workload = read(resource, decoder.decode(data), data)
    return workload if isinstance(workload, Workload) else None


def wire_of(resource: Resource, body: Mapping[str, Any]) -> Any:
    """The wire struct of an object that has a part of the view for itself. Raises `Invalid`."""
    try:
        return _READERS[resource.key][0].decode(msgspec.json.encode(body))
    except msgspec.MsgspecError as error:
        raise Invalid(_unreadable(resource, msgspec.json.encode(body), _why(error)).problem) from error


def _balloon(resource: Resource, document: Any, data: bytes | msgspec.Raw) -> LiveObject | None:
    """A Deployment that headroom itself applies. It is compared with what is declared, but is no workload for a buffer to follow."""
    live = _declared(resource, document, data)
    return live if BALLOON_LABEL in (live.body["metadata"].get("labels") or {}) else None


def _decoded_message(resource: Resource, message: protobuf.Message, shapes: ShapePool) -> Decoded:
    metadata = message.metadata
    namespace, name = intern(metadata.namespace), metadata.name
    _, read = _READERS[resource.key]
    try:
        value = shapes.pod_of(message) if read is None else read(resource, protobuf.object_of(resource, message), b"")
    except Exception as error:  # noqa: BLE001 - it concerns this object alone
        ref = ObjectRef(resource.group, resource.kind, namespace, name)
        return Decoded(namespace, name, problem=f"{ref} cannot be read: {_why(error)}")
    return Decoded(namespace, name, value)


def _why(error: Exception) -> str:
    if isinstance(error, msgspec.MsgspecError):
        what, _, path = str(error).partition(" - at `$.")
        return f"{what[:1].lower()}{what[1:]}" + (f" at {path[:-1]}" if path else "")
    if isinstance(error, Invalid):
        return error.message
    return f"headroom failed on it ({type(error).__name__}: {str(error)[:_LONGEST]})"


def _unreadable(resource: Resource, data: bytes | msgspec.Raw, why: str) -> Decoded:
    try:
        metadata = _NAMED.decode(data).metadata
    except msgspec.MsgspecError:
        return Decoded("", "", problem=f"a {resource.kind} cannot be read: {why}")
    ref = ref_of(resource, metadata)
    return Decoded(ref.namespace, ref.name, problem=f"{ref} cannot be read: {why}")


def _pool_problem(pool: LiveObject) -> str:
    """Why no node can be made from a NodePool. Without this the pool would just seem to be missing."""
    try:
        why = "" if read_node_pool(pool.ref, pool.body, Origin()) else "spec.template is missing"
    except Invalid as error:
        why = error.message
    except KeyError as error:
        why = f"{error.args[0]} is missing"
    except Exception:  # noqa: BLE001 - whatever its fields hold, it concerns this pool alone
        why = "it has another form than NodePools of v1 or v1beta1"
    return f"{pool.ref} cannot be read: {why}" if why else ""


def list_items(data: bytes) -> wire.ListWire:
    """A page of a list with its items undecoded. Raises `Invalid`."""
    try:
        page = _LIST.decode(data)
    except msgspec.MsgspecError as error:
        raise Invalid(f"is not a Kubernetes List: {str(error)[:1].lower()}{str(error)[1:]}") from error
    if not page.kind.endswith("List"):
        raise Invalid(f"is not a Kubernetes List but {page.kind or 'something without a kind'}")
    return page


_BALLOON_LABEL = BALLOON_LABEL.encode()
_LIST = msgspec.json.Decoder(wire.ListWire)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_NAMED = msgspec.json.Decoder(wire.NamespaceWire)


def _inventory(_resource: Resource, config_map: wire.ConfigMapWire, _data: Body) -> InventoryRecord:
    metadata = config_map.metadata
    return InventoryRecord(metadata.annotations or {}, records_of(config_map.data or {}), metadata.resource_version)


def _declared(resource: Resource, document: wire.NamespaceWire, data: bytes | msgspec.Raw) -> LiveObject:
    body = _OBJECT.decode(data)
    metadata = body["metadata"]
    # The version changes with every write, even if nothing that headroom reads changes.
    metadata.pop("resourceVersion", None)
    managed = metadata.pop("managedFields", None)
    managers = field_managers(data) if managed else {}
    # Items of an API server's list lack apiVersion and kind.
    body.setdefault("apiVersion", "/".join(filter(None, (resource.group, *resource.versions[:1]))))
    body.setdefault("kind", resource.kind)
    told = (status_writes(data), scaler_of(data)) if managed else ({}, "")
    return LiveObject(ref_of(resource, document.metadata), body, managers, *told)


_Reader = tuple[msgspec.json.Decoder[Any], Callable[[Resource, Any, Any], Value | None] | None]

_READERS: Mapping[tuple[str, str], _Reader] = {
    PODS.key: (msgspec.json.Decoder(wire.PodWire), None),  # read by pod_of, which shares shapes
    CONFIG_MAPS.key: (msgspec.json.Decoder(wire.ConfigMapWire), _inventory),
    **NODE_DECODERS,
    **WORKLOAD_DECODERS,
    **STORAGE_DECODERS,
}
_DECLARED: _Reader = (msgspec.json.Decoder(wire.NamespaceWire), _declared)
_OTHERS: Mapping[tuple[bool, bool], _Reader] = {
    (True, True): _DECLARED,
    (True, False): _DECLARED,
    (False, True): (msgspec.json.Decoder(wire.WorkloadWire), workload_of),
    (False, False): (msgspec.json.Decoder(wire.ScaledWire), scaled_workload_of),
}
"""Keyed by whether the kind is declared, and whether it is Kubernetes' own."""


def _reader_of(resource: Resource) -> _Reader:
    return _READERS.get(resource.key) or _OTHERS[resource.declared, resource.builtin]
