"""Workloads, and what administrators say of their pods: priority classes, quotas, disruption budgets, labels of namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.wire import ref_of
from reconciler.cluster.resources import Resource
from reconciler.manifests.pods.pod_shape import requirement_of, selector_of
from reconciler.manifests.pods.pod_spec_wire import LabelSelectorWire, Quantities, SelectorRequirementWire
from reconciler.manifests.pods.workload import template_shape, workload_from
from reconciler.model.errors import Invalid
from reconciler.model.marks import is_own
from reconciler.model.pods import DaemonSet, PodDisruptionBudget, PriorityClass, QueuedWorkload, ResourceQuota, Workload
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement, parse_selector

_PARTS = frozenset({"matchLabels", "matchExpressions"})


def selector_in(value: Any) -> LabelSelector | None:
    """A selector in any of its forms: a LabelSelector, a bare map of labels, or text; None where there is none.

    An empty one counts as none, since a scale that selects every pod of its namespace says nothing about its own.
    """
    if isinstance(value, dict) and not value.keys() <= _PARTS:
        value = {"matchLabels": value}
    try:
        if isinstance(value, str):
            return parse_selector(value) if value.strip() else None
        return selector_of(msgspec.convert(value, LabelSelectorWire)) if isinstance(value, dict) and value else None
    except (msgspec.ValidationError, Invalid):
        return None


def daemon_set_of(daemon_set: wire.DaemonSetWire) -> DaemonSet:
    metadata = daemon_set.metadata
    namespace = metadata.namespace or ""
    generation = (metadata.annotations or {}).get("deprecated.daemonset.template.generation", "")
    return DaemonSet(namespace, metadata.name, template_shape(daemon_set.spec.template, namespace), generation)


def workload_of(resource: Resource, workload: wire.WorkloadWire, data: bytes | msgspec.Raw) -> Workload | None:
    if _is_history(resource, workload):
        return None
    return workload_from(
        ref_of(resource, workload.metadata),
        workload.spec,
        workload.status,
        manager=lambda path: _other_manager(data, path),
        generation=workload.metadata.generation,
    )


def scaled_workload_of(resource: Resource, scaled: wire.ScaledWire, data: bytes | msgspec.Raw) -> Workload:
    """A workload of which only the scale is known. A pod template in it is ignored."""
    spec = scaled.spec if isinstance(scaled.spec, dict) else {}
    status = scaled.status if isinstance(scaled.status, dict) else {}
    selectors = (status.get("selector"), status.get("labelSelector"), spec.get("selector"))
    return Workload(
        ref=ref_of(resource, scaled.metadata),
        shape=None,
        replicas=_whole(spec.get("replicas")),
        observed_replicas=_whole(status.get("replicas")),
        selector=next(filter(None, map(selector_in, selectors)), None),
        replicas_manager=_other_manager(data, "spec.replicas"),
        generation=scaled.metadata.generation,
    )


def _whole(value: Any) -> int | None:
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


def priority_class_of(priority: wire.PriorityClassWire) -> PriorityClass:
    return PriorityClass(priority.metadata.name, priority.value, bool(priority.global_default))


def queued_workload_of(workload: wire.QueuedWorkloadWire) -> QueuedWorkload:
    metadata = workload.metadata
    return QueuedWorkload(metadata.namespace or "", metadata.name, workload.spec.priority or 0)


def resource_quota_of(quota: wire.ResourceQuotaWire) -> ResourceQuota:
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


def pod_disruption_budget_of(budget: wire.PodDisruptionBudgetWire) -> PodDisruptionBudget:
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


def namespace_of(namespace: wire.NamespaceWire) -> NamespaceLabels:
    return NamespaceLabels(namespace.metadata.name, namespace.metadata.labels or {})


_MANAGED = msgspec.json.Decoder(wire.ManagedWire)
_MANAGER = msgspec.json.Decoder(wire.ManagerWire)
_STATUS, _CONDITIONS = "f:status", "f:conditions"
_MESSAGE = "f:message"
_KEYED_BY_TYPE = 'k:{"type":'


def managers_in(data: bytes | msgspec.Raw) -> list[wire.ManagerWire]:
    """The entries of an object's managedFields. One that is not in structured-merge-diff's format FieldsV1 is skipped."""
    entries: list[wire.ManagerWire] = []
    with suppress(msgspec.MsgspecError):
        for raw in _MANAGED.decode(data).metadata.managed_fields or ():
            with suppress(msgspec.MsgspecError):
                entries.append(_MANAGER.decode(raw))
    return entries


def field_managers(entries: Iterable[wire.ManagerWire]) -> dict[str, frozenset[str]]:
    """By field manager, the fields it owns, two levels deep (`spec.replicas`, `status.conditions`), and conditions by type
    (`status.conditions.Ready`).

    A condition belongs to the manager of its message. After another manager has overwritten it, the former one still owns fields
    with an unchanged value, such as the time, which means nothing. Of headroom's own conditions every owned field counts.
    """
    owned: dict[str, set[str]] = {}
    for entry in entries:
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


def status_writes(entries: Iterable[wire.ManagerWire]) -> dict[str, str]:
    """By field manager, when it last changed the status, as the API server recorded it."""
    times: dict[str, str] = {}
    for entry in entries:
        if entry.time and _STATUS in (entry.fields or {}):
            times[entry.manager] = max(entry.time, times.get(entry.manager, ""))
    return dict(sorted(times.items()))


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


def _other_manager(data: bytes | msgspec.Raw, path: str) -> str | None:
    """The manager other than headroom that owns a field of the spec. One that wrote through the scale subresource, an autoscaler, comes
    first."""
    name = f"f:{path.removeprefix('spec.')}"
    if f'"{name}"'.encode() not in bytes(data):
        return None
    found = [(entry.subresource != "scale", entry.manager) for entry in _others(managers_in(data), name)]
    return min(found)[1] if found else None


def scaler_of(entries: Iterable[wire.ManagerWire]) -> str:
    """The manager other than headroom that has set `spec.replicas` through the scale subresource; "" for none."""
    found = (entry.manager for entry in _others(entries, "f:replicas") if entry.subresource == "scale")
    return min(found, default="")


def _others(entries: Iterable[wire.ManagerWire], name: str) -> Iterator[wire.ManagerWire]:
    """The entries of managers other than headroom that own this field of the spec."""
    for entry in entries:
        if name in (entry.fields or {}).get("f:spec", {}) and not is_own(entry.manager):
            yield entry
