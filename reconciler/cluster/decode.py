"""From API objects to the model. Used by ViewStore for whatever a watch, a snapshot or the embedded cluster hands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from reconciler.cluster import wire
from reconciler.cluster.device_wire import DECODERS as DEVICE_DECODERS
from reconciler.cluster.device_wire import DeviceValue
from reconciler.cluster.inventory import InventoryRecord, memory_of
from reconciler.cluster.managers import field_managers, other_manager_of
from reconciler.cluster.resources import (
    BY_KIND,
    CONFIG_MAPS,
    CORE,
    NODE_POOLS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
    group_of,
)
from reconciler.cluster.shapes import ShapePool
from reconciler.cluster.storage_wire import DECODERS as STORAGE_DECODERS
from reconciler.cluster.storage_wire import StorageValue
from reconciler.manifests.kind import Origin
from reconciler.manifests.node_pool import read as read_node_pool
from reconciler.manifests.pod_spec import requirement_of, selector_of, shape_of
from reconciler.manifests.pod_wire import LabelSelectorWire, PodSpecWire, Quantities
from reconciler.model.durations import parse_duration
from reconciler.model.errors import Invalid
from reconciler.model.nodes import DO_NOT_DISRUPT, Labels, Node, NodeClaim, NodeClassRef
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Taint
from reconciler.model.view import LiveObject, PodDisruptionBudget, ResourceQuota
from reconciler.model.workloads import DaemonSet, PriorityClass, Workload

Body = Mapping[str, Any] | bytes | msgspec.Raw
"""An API object: plain JSON values, or its JSON text."""

_ACTED_ON = ("karpenter.sh/", "headroom.dev/")
_POD_ANNOTATIONS = frozenset(
    {
        DO_NOT_DISRUPT,
        "autoscaling.x-k8s.io/consume-provisioning-request",
        "autoscaling.x-k8s.io/provisioning-class-name",
        "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
        "cluster-autoscaler.kubernetes.io/provisioning-class-name",
    }
)
_TERMINAL = frozenset({"Succeeded", "Failed"})
_DEFAULT_EXPIRY = "720h"  # the CRD's default of spec.expireAfter
_QUOTA_PREFIX = "requests."
_QUOTA_PLAIN = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


@dataclass(frozen=True, slots=True)
class NamespaceLabels:
    name: str
    labels: Mapping[str, str]


Value = (
    Node
    | NodeClaim
    | Pod
    | DaemonSet
    | Workload
    | PriorityClass
    | ResourceQuota
    | PodDisruptionBudget
    | NamespaceLabels
    | LiveObject
    | InventoryRecord
    | StorageValue
    | DeviceValue
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """value None: the object counts for nothing (a finished pod), or cannot be read, and then `problem` says why. A value
    with a problem is an object that is there, to be compared with what is declared, but of which nothing can be made.

    version: its resourceVersion, "" when it has none.
    """

    namespace: str
    name: str
    value: Value | None = None
    version: str = ""
    problem: str = ""


def decode(resource: Resource, body: Body, shapes: ShapePool | None = None) -> Decoded:
    """One object. Never raises: one odd object must not spoil the others. shapes: where pods share theirs."""
    data = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    decoder, read = _READERS.get(resource.key) or _OTHERS[resource.declared]
    try:
        document = decoder.decode(data)
        value = _pod(document, shapes or ShapePool()) if read is None else read(resource, document, data)
    except msgspec.MsgspecError as error:
        what, _, path = str(error).partition(" - at `$.")
        return _unreadable(resource, data, f"{what[:1].lower()}{what[1:]}" + (f" at {path[:-1]}" if path else ""))
    except Invalid as error:
        return _unreadable(resource, data, error.message)
    metadata: wire.MetadataWire = document.metadata
    problem = _pool_problem(value) if resource.key == NODE_POOLS.key and isinstance(value, LiveObject) else ""
    return Decoded(metadata.namespace or "", metadata.name, value, metadata.resource_version, problem)


def _unreadable(resource: Resource, data: bytes | msgspec.Raw, why: str) -> Decoded:
    try:
        metadata = _NAMED.decode(data).metadata
    except msgspec.MsgspecError:
        return Decoded("", "", problem=f"a {resource.kind} cannot be read: {why}")
    ref = _ref(resource, metadata)
    return Decoded(ref.namespace, ref.name, version=metadata.resource_version, problem=f"{ref} cannot be read: {why}")


def _pool_problem(pool: LiveObject) -> str:
    """Why no node can be made from a NodePool: without a word, it would only seem not to be there."""
    try:
        why = "" if read_node_pool(pool.ref, pool.body, Origin()) else "spec.template is missing"
    except Invalid as error:
        why = error.message
    except KeyError as error:
        why = f"{error.args[0]} is missing"
    except (TypeError, ValueError, AttributeError):
        why = "it has another form than NodePools of v1 or v1beta1"
    return f"{pool.ref} cannot be read: {why}" if why else ""


def resource_in(body: Body) -> Resource | None:
    """The kind that an object says it is; None when headroom has no use for it."""
    data = msgspec.json.encode(body) if isinstance(body, Mapping) else body
    kind = _TYPE.decode(data)
    return BY_KIND.get((group_of(kind.api_version), kind.kind))


def list_items(data: bytes) -> wire.ListWire:
    """A page of a list, its items unread. Raises `Invalid`."""
    try:
        page = _LIST.decode(data)
    except msgspec.MsgspecError as error:
        raise Invalid(f"is not a Kubernetes List: {str(error)[:1].lower()}{str(error)[1:]}") from error
    if not page.kind.endswith("List"):
        raise Invalid(f"is not a Kubernetes List but {page.kind or 'something without a kind'}")
    return page


_LIST = msgspec.json.Decoder(wire.ListWire)
_TYPE = msgspec.json.Decoder(wire.TypeWire)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_NAMED = msgspec.json.Decoder(wire.NamespaceWire)
_SELECTOR = msgspec.json.Decoder(LabelSelectorWire)
_TEXTS = msgspec.json.Decoder(wire.Texts)


def _ref(resource: Resource, metadata: wire.MetadataWire) -> ObjectRef:
    return ObjectRef(resource.group, resource.kind, metadata.namespace or "", metadata.name)


def _labels(texts: wire.Texts | None) -> Labels:
    return tuple(sorted(texts.items())) if texts else ()


def _acted_on(texts: wire.Texts | None) -> Labels:
    return tuple(sorted(item for item in texts.items() if item[0].startswith(_ACTED_ON))) if texts else ()


@lru_cache(maxsize=1024)
def _taint(taint: wire.TaintWire) -> Taint:
    return Taint(taint.key, taint.value or "", taint.effect)


def _taints(taints: tuple[wire.TaintWire, ...] | None) -> tuple[Taint, ...]:
    return tuple(map(_taint, taints)) if taints else ()


def _resources(quantities: Quantities | None) -> Resources:
    return Resources.parse({name: value for name, value in (quantities or {}).items() if value is not None})


def _node(_resource: Resource, node: wire.NodeWire, _data: Body) -> Node:
    metadata, spec, status = node.metadata, node.spec, node.status
    return Node(
        name=metadata.name,
        allocatable=_resources(status.allocatable),
        labels=_labels(metadata.labels),
        annotations=_acted_on(metadata.annotations),
        taints=_taints(spec.taints),
        capacity=_resources(status.capacity),
        uid=metadata.uid,
        provider_id=spec.provider_id or "",
        ready=any(item.type == "Ready" and item.status == "True" for item in status.conditions or ()),
        unschedulable=bool(spec.unschedulable),
        deleting=metadata.deletion_timestamp is not None,
        created=metadata.creation_timestamp,
    )


def _node_claim(_resource: Resource, claim: wire.NodeClaimWire, _data: Body) -> NodeClaim:
    metadata, spec, status = claim.metadata, claim.spec, claim.status
    node_class = spec.node_class_ref
    return NodeClaim(
        name=metadata.name,
        labels=_labels(metadata.labels),
        annotations=_acted_on(metadata.annotations),
        requirements=tuple(
            replace(requirement_of(item), min_values=item.min_values) for item in spec.requirements or ()
        ),
        requests=_resources(spec.resources.requests),
        taints=_taints(spec.taints),
        startup_taints=_taints(spec.startup_taints),
        node_class=NodeClassRef(node_class.group, node_class.kind, node_class.name) if node_class else None,
        uid=metadata.uid,
        node_name=status.node_name or None,
        provider_id=status.provider_id or "",
        conditions=tuple(sorted((item.type, item.status) for item in status.conditions or ())),
        capacity=_resources(status.capacity),
        allocatable=_resources(status.allocatable),
        created=metadata.creation_timestamp,
        deleting=metadata.deletion_timestamp is not None,
        expire_after=_expiry(spec.expire_after or _DEFAULT_EXPIRY),
    )


def _expiry(text: str) -> timedelta | None:
    return None if text == "Never" else parse_duration(text)


def _pod(pod: wire.PodWire, shapes: ShapePool) -> Pod | None:
    metadata, spec = pod.metadata, pod.spec
    phase = pod.status.phase or "Pending"
    if phase in _TERMINAL:
        return None
    owner = wire.controller_of(metadata)
    annotations = metadata.annotations
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


def _template_shape(template: wire.TemplateWire | None, namespace: str) -> PodShape:
    """Of the pods to come: a virtual pod has no claims, since nothing would make them."""
    labels = template.metadata.labels if template and template.metadata else None
    spec = template.spec if template else PodSpecWire()
    return replace(shape_of(spec, namespace=namespace, labels=labels or {}), volume_claims=())


def _daemon_set(_resource: Resource, daemon_set: wire.DaemonSetWire, _data: Body) -> DaemonSet:
    namespace = daemon_set.metadata.namespace or ""
    return DaemonSet(namespace, daemon_set.metadata.name, _template_shape(daemon_set.spec.template, namespace))


def _workload(resource: Resource, workload: wire.WorkloadWire, data: bytes | msgspec.Raw) -> Workload | None:
    metadata, spec = workload.metadata, workload.spec
    if _is_history(resource, workload):
        return None
    template, replicas, path = spec.template, spec.replicas, "spec.replicas"
    if resource.kind == "Job":
        replicas, path = spec.parallelism, "spec.parallelism"
    elif resource.kind == "CronJob":
        job = spec.job_template.spec if spec.job_template else wire.JobTemplateSpecWire()
        template, replicas, path = job.template, job.parallelism, "spec.jobTemplate"
    return Workload(
        ref=_ref(resource, metadata),
        shape=_template_shape(template, metadata.namespace or "") if template is not None else None,
        replicas=replicas,
        observed_replicas=workload.status.replicas,
        selector=_workload_selector(resource, spec.selector),
        replicas_manager=other_manager_of(data, path),
        generation=metadata.generation,
    )


def _is_history(resource: Resource, workload: wire.WorkloadWire) -> bool:
    """An old revision that a Deployment keeps for rollbacks: there may be ten for each and nothing points to them."""
    owners = workload.metadata.owner_references or ()
    return resource.kind == "ReplicaSet" and workload.spec.replicas == 0 and any(o.kind == "Deployment" for o in owners)


def _workload_selector(resource: Resource, raw: msgspec.Raw) -> LabelSelector | None:
    if raw == wire.NULL:
        return None
    if resource.key == (CORE, "ReplicationController"):
        return LabelSelector(_labels(_TEXTS.decode(raw)))
    return selector_of(_SELECTOR.decode(raw))


def _priority_class(_resource: Resource, priority: wire.PriorityClassWire, _data: Body) -> PriorityClass:
    return PriorityClass(priority.metadata.name, priority.value, bool(priority.global_default))


def _resource_quota(_resource: Resource, quota: wire.ResourceQuotaWire, _data: Body) -> ResourceQuota | None:
    """A quota with scopes counts for some pods only, and whether for a virtual one cannot be told: it is left out."""
    if quota.spec.scopes or quota.spec.scope_selector != wire.NULL:
        return None
    hard = quota.status.hard if quota.status.hard is not None else quota.spec.hard
    return ResourceQuota(
        namespace=quota.metadata.namespace or "",
        name=quota.metadata.name,
        hard=tuple(sorted(_compute(hard).items())),
        used=Resources.of(_compute(quota.status.used)),
    )


def _pod_disruption_budget(
    _resource: Resource, budget: wire.PodDisruptionBudgetWire, _data: Body
) -> PodDisruptionBudget:
    spec = budget.spec
    return PodDisruptionBudget(
        budget.metadata.namespace or "",
        budget.metadata.name,
        None if spec.selector is None else selector_of(spec.selector),
        budget.status.disruptions_allowed,
        allows_none=spec.max_unavailable in {0, "0%"} or spec.min_available == "100%",
    )


def _compute(quantities: Quantities | None) -> dict[str, int]:
    """Only what pods request; a limit of zero stays, since it forbids."""
    amounts = {}
    for key, value in (quantities or {}).items():
        name = key.removeprefix(_QUOTA_PREFIX)
        if value is not None and (name != key or name in _QUOTA_PLAIN) and name != "storage":
            amounts[name] = Resources.parse({name: value}).get(name)
    return amounts


def _namespace(_resource: Resource, namespace: wire.NamespaceWire, _data: Body) -> NamespaceLabels:
    return NamespaceLabels(namespace.metadata.name, namespace.metadata.labels or {})


def _inventory(_resource: Resource, config_map: wire.ConfigMapWire, _data: Body) -> InventoryRecord:
    return InventoryRecord(config_map.metadata.annotations or {}, memory_of(config_map.data or {}))


def _declared(resource: Resource, document: wire.NamespaceWire, data: bytes | msgspec.Raw) -> LiveObject:
    body = _OBJECT.decode(data)
    metadata = body["metadata"]
    # The version changes with every write, also with those that change nothing for us.
    metadata.pop("resourceVersion", None)
    managers = field_managers(data) if metadata.pop("managedFields", None) else {}
    # Items of a list from an API server do not say what they are.
    body.setdefault("apiVersion", "/".join(filter(None, (resource.group, *resource.versions[:1]))))
    body.setdefault("kind", resource.kind)
    return LiveObject(_ref(resource, document.metadata), body, managers)


_Wire = TypeVar("_Wire")
_Reader = tuple["msgspec.json.Decoder[Any]", Callable[[Resource, Any, Any], Value | None] | None]


def _reader(kind: type[_Wire], read: Callable[[Resource, _Wire, Any], Value | None]) -> _Reader:
    return msgspec.json.Decoder(kind), read


_READERS: dict[tuple[str, str], _Reader] = {
    ("", "Node"): _reader(wire.NodeWire, _node),
    ("karpenter.sh", "NodeClaim"): _reader(wire.NodeClaimWire, _node_claim),
    PODS.key: (msgspec.json.Decoder(wire.PodWire), None),  # read by _pod, which shares shapes
    ("apps", "DaemonSet"): _reader(wire.DaemonSetWire, _daemon_set),
    ("scheduling.k8s.io", "PriorityClass"): _reader(wire.PriorityClassWire, _priority_class),
    ("", "ResourceQuota"): _reader(wire.ResourceQuotaWire, _resource_quota),
    POD_DISRUPTION_BUDGETS.key: _reader(wire.PodDisruptionBudgetWire, _pod_disruption_budget),
    ("", "Namespace"): _reader(wire.NamespaceWire, _namespace),
    CONFIG_MAPS.key: _reader(wire.ConfigMapWire, _inventory),
    **STORAGE_DECODERS,
    **DEVICE_DECODERS,
}
_OTHERS = {
    True: _reader(wire.NamespaceWire, _declared),
    False: _reader(wire.WorkloadWire, _workload),
}
