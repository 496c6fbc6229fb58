"""Administrators' policies about pods: priority classes, queues' priorities, quotas, disruption budgets and labels of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.cluster.resources import POD_DISRUPTION_BUDGETS, QUEUED_WORKLOADS, Resource
from reconciler.manifests.pods.pod_shape import requirement_of, selector_of
from reconciler.manifests.pods.pod_spec_wire import Quantities, SelectorRequirementWire
from reconciler.model.pods import PodDisruptionBudget, PriorityClass, QueuedWorkload
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ResourceQuota

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


PolicyValue = PriorityClass | QueuedWorkload | ResourceQuota | PodDisruptionBudget | NamespaceLabels
DECODERS: dict[
    tuple[str, str], tuple[msgspec.json.Decoder[Any], Callable[[Resource, Any, Any], PolicyValue | None]]
] = {
    ("scheduling.k8s.io", "PriorityClass"): (msgspec.json.Decoder(wire.PriorityClassWire), _priority_class),
    QUEUED_WORKLOADS.key: (msgspec.json.Decoder(wire.QueuedWorkloadWire), _queued_workload),
    ("", "ResourceQuota"): (msgspec.json.Decoder(wire.ResourceQuotaWire), _resource_quota),
    POD_DISRUPTION_BUDGETS.key: (msgspec.json.Decoder(wire.PodDisruptionBudgetWire), _pod_disruption_budget),
    ("", "Namespace"): (msgspec.json.Decoder(wire.NamespaceWire), _namespace),
}
