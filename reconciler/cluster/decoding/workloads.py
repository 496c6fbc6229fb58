"""Workloads, and what administrators say of their pods: priority classes, quotas, disruption budgets, labels of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.wire import ref_of
from reconciler.cluster.resources import POD_DISRUPTION_BUDGETS, QUEUED_WORKLOADS, Resource
from reconciler.manifests.pods.pod_shape import requirement_of, selector_of
from reconciler.manifests.pods.pod_spec_wire import LabelSelectorWire, Quantities, SelectorRequirementWire
from reconciler.manifests.pods.workload import template_shape, workload_from
from reconciler.model.errors import Invalid
from reconciler.model.marks import is_own
from reconciler.model.pods import DaemonSet, PodDisruptionBudget, PriorityClass, QueuedWorkload, ResourceQuota, Workload
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement, parse_selector

_PARTS = frozenset({"matchLabels", "matchExpressions"})


def selector_in(raw: msgspec.Raw) -> LabelSelector | None:
    """A selector in any of its forms: a LabelSelector, a bare map of labels, or text; None where there is none.

    An empty one counts as none, since a scale that selects every pod of its namespace says nothing about its own.
    """
    value = msgspec.json.decode(raw)
    if isinstance(value, dict) and not value.keys() <= _PARTS:
        value = {"matchLabels": value}
    try:
        if isinstance(value, str):
            return parse_selector(value) if value.strip() else None
        return selector_of(msgspec.convert(value, LabelSelectorWire)) if isinstance(value, dict) and value else None
    except (msgspec.ValidationError, Invalid):
        return None


_SCALED_SPEC = msgspec.json.Decoder(wire.ScaledSpecWire)
_SCALED_STATUS = msgspec.json.Decoder(wire.ScaledStatusWire)


def _daemon_set(_resource: Resource, daemon_set: wire.DaemonSetWire, _data: Any) -> DaemonSet:
    namespace = daemon_set.metadata.namespace or ""
    return DaemonSet(namespace, daemon_set.metadata.name, template_shape(daemon_set.spec.template, namespace))


def workload_of(resource: Resource, workload: wire.WorkloadWire, data: bytes | msgspec.Raw) -> Workload | None:
    if _is_history(resource, workload):
        return None
    return workload_from(
        ref_of(resource, workload.metadata),
        workload.spec,
        workload.status,
        manager=lambda path: other_manager_of(data, path),
        generation=workload.metadata.generation,
    )


def scaled_workload_of(resource: Resource, scaled: wire.ScaledWire, data: bytes | msgspec.Raw) -> Workload:
    """A workload of which only the scale is known. A pod template in it is ignored."""
    spec, status = _part(_SCALED_SPEC, scaled.spec), _part(_SCALED_STATUS, scaled.status)
    return Workload(
        ref=ref_of(resource, scaled.metadata),
        shape=None,
        replicas=_whole(spec.replicas),
        observed_replicas=_whole(status.replicas),
        selector=selector_in(status.selector) or selector_in(status.label_selector) or selector_in(spec.selector),
        replicas_manager=other_manager_of(data, "spec.replicas"),
        generation=scaled.metadata.generation,
    )


def _part(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw) -> Any:
    """The decoded part; one with defaults if it is not an object."""
    return decoder.decode(raw if bytes(raw).lstrip()[:1] == b"{" else b"{}")


def _whole(raw: msgspec.Raw) -> int | None:
    value = msgspec.json.decode(raw)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_history(resource: Resource, workload: wire.WorkloadWire) -> bool:
    """Whether it is an old ReplicaSet that a Deployment keeps for rollbacks. There may be ten for each, and nothing uses them."""
    owners = workload.metadata.owner_references or ()
    return resource.kind == "ReplicaSet" and workload.spec.replicas == 0 and any(o.kind == "Deployment" for o in owners)


_QUOTA_PREFIX = "requests."
_QUOTA_PLAIN = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


@dataclass(frozen=True, slots=True)
class NamespaceLabels:
    name: str
    labels: Mapping[str, str]


def _priority_class(_resource: Resource, priority: wire.PriorityClassWire, _data: Any) -> PriorityClass:
    return PriorityClass(priority.metadata.name, priority.value, bool(priority.global_default))


def _queued_workload(_resource: Resource, workload: wire.QueuedWorkloadWire, _data: Any) -> QueuedWorkload:
    metadata = workload.metadata
    return QueuedWorkload(metadata.namespace or "", metadata.name, workload.spec.priority or 0)


def _resource_quota(_resource: Resource, quota: wire.ResourceQuotaWire, _data: Any) -> ResourceQuota:
    hard = quota.status.hard if quota.status.hard is not None else quota.spec.hard
    return ResourceQuota(
        namespace=quota.metadata.namespace or "",
        name=quota.metadata.name,
        hard=tuple(sorted(_compute(hard).items())),
        used=Resources.of(_compute(quota.status.used)),
        scopes=_scopes(quota.spec),
    )


def _scopes(spec: wire.QuotaSpecWire) -> tuple[Requirement, ...]:
    """The scopes of a quota, from both fields that may have them. Raises `Invalid` on an unknown operator."""
    selector = spec.scope_selector
    rows = () if selector is None else selector.match_expressions or ()
    return (
        *(Requirement(name, Operator.EXISTS) for name in spec.scopes or ()),
        *(requirement_of(SelectorRequirementWire(row.scope_name, row.operator, row.values)) for row in rows),
    )


def _pod_disruption_budget(
    _resource: Resource, budget: wire.PodDisruptionBudgetWire, _data: Any
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
    """Only the resources that pods request. A limit of zero is kept, since it forbids them."""
    amounts = {}
    for key, value in (quantities or {}).items():
        name = key.removeprefix(_QUOTA_PREFIX)
        if value is not None and (name != key or name in _QUOTA_PLAIN) and name != "storage":
            amounts[name] = Resources.parse({name: value}).get(name)
    return amounts


def _namespace(_resource: Resource, namespace: wire.NamespaceWire, _data: Any) -> NamespaceLabels:
    return NamespaceLabels(namespace.metadata.name, namespace.metadata.labels or {})


WorkloadValue = DaemonSet | PriorityClass | QueuedWorkload | ResourceQuota | PodDisruptionBudget | NamespaceLabels
DECODERS: dict[
    tuple[str, str], tuple[msgspec.json.Decoder[Any], Callable[[Resource, Any, Any], WorkloadValue | None]]
] = {
    ("apps", "DaemonSet"): (msgspec.json.Decoder(wire.DaemonSetWire), _daemon_set),
    ("scheduling.k8s.io", "PriorityClass"): (msgspec.json.Decoder(wire.PriorityClassWire), _priority_class),
    QUEUED_WORKLOADS.key: (msgspec.json.Decoder(wire.QueuedWorkloadWire), _queued_workload),
    ("", "ResourceQuota"): (msgspec.json.Decoder(wire.ResourceQuotaWire), _resource_quota),
    POD_DISRUPTION_BUDGETS.key: (msgspec.json.Decoder(wire.PodDisruptionBudgetWire), _pod_disruption_budget),
    ("", "Namespace"): (msgspec.json.Decoder(wire.NamespaceWire), _namespace),
}


_MANAGED = msgspec.json.Decoder(wire.ManagedWire)
_MANAGER = msgspec.json.Decoder(wire.ManagerWire)
_STATUS, _CONDITIONS = "f:status", "f:conditions"
_MESSAGE = "f:message"
_KEYED_BY_TYPE = 'k:{"type":'


def field_managers(data: bytes | msgspec.Raw) -> dict[str, frozenset[str]]:
    """By field manager, the fields it owns, two levels deep (`spec.replicas`, `status.conditions`), and conditions by type
    (`status.conditions.Ready`).

    A condition belongs to the manager of its message. After another manager has overwritten it, the former one still owns fields
    with an unchanged value, such as the time, which means nothing. Of headroom's own conditions every owned field counts. An entry
    that is not in structured-merge-diff's format FieldsV1 is skipped.
    """
    owned: dict[str, set[str]] = {}
    for entry in _managers(data):
        fields = owned.setdefault(entry.manager, set())
        for section, inner in (entry.fields or {}).items():
            names = [name for name in inner if name.startswith("f:")]
            fields.update(f"{section[2:]}.{name[2:]}" for name in names)
            if not names:
                fields.add(section[2:])
            if section == _STATUS and _CONDITIONS in inner:
                kinds = _condition_types(inner[_CONDITIONS], with_message=not is_own(entry.manager))
                fields.update(f"status.conditions.{kind}" for kind in kinds)
    return {manager: frozenset(fields) for manager, fields in sorted(owned.items())}


def status_writes(data: bytes | msgspec.Raw) -> dict[str, str]:
    """By field manager, when it last changed the status, as the API server recorded it."""
    times: dict[str, str] = {}
    for entry in _managers(data):
        if entry.time and _STATUS in (entry.fields or {}):
            times[entry.manager] = max(entry.time, times.get(entry.manager, ""))
    return dict(sorted(times.items()))


def _managers(data: bytes | msgspec.Raw) -> Iterator[wire.ManagerWire]:
    for raw in _entries(data):
        try:
            yield _MANAGER.decode(raw)
        except msgspec.MsgspecError:
            continue


def _condition_types(raw: msgspec.Raw, *, with_message: bool) -> Iterator[str]:
    """The types of owned conditions, which are a list keyed by type: `k:{"type":"Ready"}`. with_message: only conditions whose message
    is owned."""
    fields = msgspec.json.decode(raw)
    for step, inner in fields.items() if isinstance(fields, dict) else ():
        if step.startswith(_KEYED_BY_TYPE) and not (with_message and inner and _MESSAGE not in inner):
            try:
                yield str(msgspec.json.decode(step[len("k:") :])["type"])
            except msgspec.MsgspecError:
                continue


def other_manager_of(data: bytes | msgspec.Raw, path: str) -> str | None:
    """The manager other than headroom that owns a field. One that wrote through the scale subresource, an autoscaler, comes first."""
    found = _owners(data, path)
    return min(found)[1] if found else None


def scaler_of(data: bytes | msgspec.Raw) -> str:
    """The manager other than headroom that has set `spec.replicas` through the scale subresource; "" for none."""
    return min((manager for is_other, manager in _owners(data, "spec.replicas") if not is_other), default="")


def _owners(data: bytes | msgspec.Raw, path: str) -> list[tuple[bool, str]]:
    """The managers other than headroom that own a field, and for each whether it wrote otherwise than through the scale subresource."""
    steps = path.split(".")
    if f'"f:{steps[-1]}"'.encode() not in bytes(data):
        return []
    found = []
    for raw in _entries(data):
        entry: dict[str, Any] = msgspec.json.decode(raw)
        node: Any = entry.get("fieldsV1")
        for step in steps:
            node = node.get(f"f:{step}") if isinstance(node, dict) else None
        manager = str(entry.get("manager", ""))
        if node is not None and not is_own(manager):
            found.append((entry.get("subresource") != "scale", manager))
    return found


def _entries(data: bytes | msgspec.Raw) -> tuple[msgspec.Raw, ...]:
    try:
        return _MANAGED.decode(data).metadata.managed_fields or ()
    except msgspec.MsgspecError:
        return ()
