"""From API objects to the model: of each kind, which fields are read and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern
from typing import Any, NamedTuple

import msgspec

from reconciler.cluster.apply import inventory_in
from reconciler.cluster.decoding import nodes, protobuf, storage, wire, workloads
from reconciler.cluster.decoding.pods import ShapePool, pod_of
from reconciler.cluster.decoding.wire import ref_of
from reconciler.cluster.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    QUEUED_WORKLOADS,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    Resource,
)
from reconciler.manifests.kind import Origin
from reconciler.manifests.node_pool import read as read_node_pool
from reconciler.manifests.pods.pod_spec_wire import Wire
from reconciler.model.buffers import BALLOON_LABEL
from reconciler.model.errors import Invalid
from reconciler.model.pods import Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory
from reconciler.model.view import LiveObject

Body = Mapping[str, Any] | bytes | msgspec.Raw | protobuf.Message
"""An API object: plain JSON values, its JSON text, or an item of a list in protobuf."""
_JSON = (bytes, msgspec.Raw, Mapping)
_LONGEST = 200
"""Characters of an error's text."""
Value = object
"""What the view has of an object: a `Node`, a `Pod`, a `LiveObject` and so on."""


def _inventory(config_map: wire.ConfigMapWire) -> Inventory:
    metadata = config_map.metadata
    return inventory_in(metadata.annotations or {}, config_map.data or {}, metadata.resource_version)


_READ: Mapping[tuple[str, str], tuple[type[Wire], Callable[[Any], Value]]] = {
    NODES.key: (wire.NodeWire, nodes.node_of),
    NODE_CLAIMS.key: (wire.NodeClaimWire, nodes.node_claim_of),
    DAEMON_SETS.key: (wire.DaemonSetWire, workloads.daemon_set_of),
    PRIORITY_CLASSES.key: (wire.PriorityClassWire, workloads.priority_class_of),
    QUEUED_WORKLOADS.key: (wire.QueuedWorkloadWire, workloads.queued_workload_of),
    RESOURCE_QUOTAS.key: (wire.ResourceQuotaWire, workloads.resource_quota_of),
    POD_DISRUPTION_BUDGETS.key: (wire.PodDisruptionBudgetWire, workloads.pod_disruption_budget_of),
    NAMESPACES.key: (wire.NamespaceWire, workloads.namespace_of),
    PERSISTENT_VOLUMES.key: (storage.VolumeWire, storage.persistent_volume_of),
    VOLUME_CLAIMS.key: (storage.VolumeClaimWire, storage.volume_claim_of),
    STORAGE_CLASSES.key: (storage.StorageClassWire, storage.storage_class_of),
    RUNTIME_CLASSES.key: (storage.RuntimeClassWire, storage.runtime_class_of),
    CONFIG_MAPS.key: (wire.ConfigMapWire, _inventory),
}
"""By kind, the fields that are read of an object, and the function that makes the view's value of them."""
_DECODERS = {key: msgspec.json.Decoder(fields) for key, (fields, _) in _READ.items()}
_POD = msgspec.json.Decoder(wire.PodWire)
_WORKLOAD = msgspec.json.Decoder(wire.WorkloadWire)
_SCALED = msgspec.json.Decoder(wire.ScaledWire)
_NAMED = msgspec.json.Decoder(wire.NamespaceWire)
_LIST = msgspec.json.Decoder(wire.ListWire)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


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
    if not isinstance(body, _JSON):
        return _decoded_message(resource, body, shapes)
    data = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    try:
        document = _decoder_of(resource).decode(data)
        value = _value_of(resource, document, data, shapes)
    except Exception as error:  # noqa: BLE001 - it concerns this object alone
        return _unreadable(resource, data, _why(error))
    metadata: wire.MetadataWire = document.metadata
    problem = _pool_problem(value) if resource.key == NODE_POOLS.key and isinstance(value, LiveObject) else ""
    return Decoded(intern(metadata.namespace or ""), metadata.name, value, problem)


def _decoder_of(resource: Resource) -> msgspec.json.Decoder[Any]:
    if resource.key in _READ:
        return _DECODERS[resource.key]
    if resource.key == PODS.key:
        return _POD
    if resource.declared:
        return _NAMED
    return _WORKLOAD if resource.builtin else _SCALED


def _value_of(resource: Resource, document: Any, data: bytes | msgspec.Raw, shapes: ShapePool | None) -> Value | None:
    if resource.key in _READ:
        return _READ[resource.key][1](document)
    if resource.key == PODS.key:
        return pod_of(document, shapes or ShapePool())
    if resource.declared:
        return _declared(resource, document, data)
    if not resource.builtin:
        return workloads.scaled_workload_of(resource, document, data)
    workload = workloads.workload_of(resource, document, data)
    if resource.key == DEPLOYMENTS.key and BALLOON_LABEL in (document.metadata.labels or {}):
        # headroom applies it. It is compared with what is declared, but is no workload for a buffer to follow.
        return _declared(resource, document, data)
    return workload


def workload_in(resource: Resource, body: Mapping[str, Any]) -> Workload | None:
    """The workload that an object is, also one of balloon pods; None for a ReplicaSet that a Deployment keeps for rollbacks.

    Raises `Invalid` and `MsgspecError`.
    """
    data = msgspec.json.encode(body)
    document = _decoder_of(resource).decode(data)
    return (workloads.workload_of if resource.builtin else workloads.scaled_workload_of)(resource, document, data)


def wire_of(resource: Resource, body: Mapping[str, Any]) -> Any:
    """The wire struct of an object that has a part of the view for itself. Raises `Invalid`."""
    try:
        return _decoder_of(resource).decode(msgspec.json.encode(body))
    except msgspec.MsgspecError as error:
        raise Invalid(_unreadable(resource, msgspec.json.encode(body), _why(error)).problem) from error


def _decoded_message(resource: Resource, message: protobuf.Message, shapes: ShapePool | None) -> Decoded:
    metadata = message.metadata
    namespace, name = intern(metadata.namespace), metadata.name
    try:
        if resource.key == PODS.key:
            value: Value | None = (shapes or ShapePool()).pod_of(message)
        else:
            value = _READ[resource.key][1](protobuf.object_of(resource, message))
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


def _declared(resource: Resource, document: Any, data: bytes | msgspec.Raw) -> LiveObject:
    body = _OBJECT.decode(data)
    metadata = body["metadata"]
    # The version changes with every write, even if nothing that headroom reads changes.
    metadata.pop("resourceVersion", None)
    entries = workloads.managers_in(data) if metadata.pop("managedFields", None) else ()
    # Items of an API server's list lack apiVersion and kind.
    if "apiVersion" not in body:
        body["apiVersion"] = resource.api_version
    body.setdefault("kind", resource.kind)
    ref = ref_of(resource, document.metadata)
    if not entries:
        return LiveObject(ref, body)
    return LiveObject(
        ref,
        body,
        workloads.field_managers(entries),
        workloads.status_writes(entries),
        workloads.scaler_of(entries),
    )
