"""Workloads, and what administrators say of their pods: priority classes, quotas, disruption budgets, labels of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.managers import other_manager_of
from reconciler.cluster.decoding.wire import ref_of
from reconciler.cluster.resources import POD_DISRUPTION_BUDGETS, QUEUED_WORKLOADS, Resource
from reconciler.manifests.pods.pod_shape import requirement_of, selector_of
from reconciler.manifests.pods.pod_spec_wire import LabelSelectorWire, Quantities, SelectorRequirementWire
from reconciler.manifests.pods.workload import template_shape, workload_from
from reconciler.model.errors import Invalid
from reconciler.model.pods import DaemonSet, PodDisruptionBudget, PriorityClass, QueuedWorkload, Workload
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement, parse_selector
from reconciler.model.view import ResourceQuota

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
