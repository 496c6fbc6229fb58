"""The few fields of API objects that headroom reads, in their wire format, and what all kinds have in common.

Everything else in a document is skipped during parsing, which makes ten thousand pods cheap to read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from reconciler.cluster.resources import Resource
from reconciler.manifests.pods.pod_spec_wire import (
    LabelSelectorWire,
    Once,
    PodSpecWire,
    Quantities,
    ResourcesWire,
    SelectorRequirementWire,
    TemplateWire,
    Wire,
    WorkloadSpecWire,
    WorkloadStatusWire,
)
from reconciler.model.nodes import Labels
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef

Texts = dict[str, str]


class OwnerWire(Wire, frozen=True):
    kind: Annotated[str, 1] = ""
    name: Annotated[str, 3] = ""
    uid: Annotated[str, 4] = ""
    controller: Annotated[bool | None, 6] = None


class MetadataWire(Wire, frozen=True):
    name: Annotated[str, 1] = ""
    namespace: Annotated[str | None, 3] = None
    uid: Annotated[str, 5] = ""
    resource_version: Annotated[str, 6] = ""
    generation: Annotated[int | None, 7] = None
    labels: Annotated[Texts | None, Once(11)] = None
    annotations: Annotated[Texts | None, Once(12)] = None
    creation_timestamp: Annotated[datetime | None, 8] = None
    deletion_timestamp: Annotated[datetime | None, 9] = None
    owner_references: Annotated[tuple[OwnerWire, ...] | None, Once(13)] = None


_NOBODY = OwnerWire()


def controller_of(metadata: MetadataWire) -> OwnerWire:
    """The owner that controls the object; an owner without a name if there is none."""
    return next((owner for owner in metadata.owner_references or () if owner.controller), _NOBODY)


class TypeWire(Wire, frozen=True):
    """apiVersion and kind of an item of a mixed list. Items of an API server's lists lack them."""

    api_version: str = ""
    kind: str = ""


class ConditionWire(Wire, frozen=True):
    type: Annotated[str, 1]
    status: Annotated[str, 2]
    last_transition_time: Annotated[datetime | None, 4] = None


class ReasonedConditionWire(ConditionWire, frozen=True):
    reason: str = ""
    message: str = ""


class TaintWire(Wire, frozen=True):
    key: Annotated[str, 1]
    effect: Annotated[str, 3]
    value: Annotated[str | None, 2] = None


class NodeSpecWire(Wire, frozen=True):
    taints: Annotated[tuple[TaintWire, ...] | None, 5] = None
    unschedulable: Annotated[bool | None, 4] = None
    provider_id: Annotated[str | None, 3] = msgspec.field(default=None, name="providerID")


class NodeStatusWire(Wire, frozen=True):
    allocatable: Annotated[Quantities | None, Once(2)] = None
    capacity: Annotated[Quantities | None, Once(1)] = None
    conditions: Annotated[tuple[ConditionWire, ...] | None, 4] = None


class NodeWire(Wire, frozen=True):
    metadata: Annotated[MetadataWire, 1]
    spec: Annotated[NodeSpecWire, 2] = NodeSpecWire()
    status: Annotated[NodeStatusWire, 3] = NodeStatusWire()


class NodeClaimRequirementWire(SelectorRequirementWire, frozen=True):
    min_values: int | None = None


class NodeClaimSpecWire(Wire, frozen=True):
    requirements: tuple[NodeClaimRequirementWire, ...] | None = None
    resources: ResourcesWire = ResourcesWire()
    taints: tuple[TaintWire, ...] | None = None
    startup_taints: tuple[TaintWire, ...] | None = None
    expire_after: str | None = None
    termination_grace_period: str | None = None


class NodeClaimStatusWire(Wire, frozen=True):
    node_name: str | None = None
    last_pod_event_time: datetime | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")
    conditions: tuple[ReasonedConditionWire, ...] | None = None
    allocatable: Quantities | None = None
    capacity: Quantities | None = None


class NodeClaimWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: NodeClaimSpecWire = NodeClaimSpecWire()
    status: NodeClaimStatusWire = NodeClaimStatusWire()


class PodStatusWire(Wire, frozen=True):
    phase: Annotated[str | None, 1] = None
    nominated_node_name: Annotated[str | None, 11] = None


class PodWire(Wire, frozen=True):
    metadata: Annotated[MetadataWire, 1]
    spec: Annotated[PodSpecWire, 2] = PodSpecWire()
    status: Annotated[PodStatusWire, 3] = PodStatusWire()


class WorkloadWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: WorkloadSpecWire = WorkloadSpecWire()
    status: WorkloadStatusWire = WorkloadStatusWire()


class ScaledWire(Wire, frozen=True):
    """An object of an unknown kind with a scale subresource. Its fields may be of any type."""

    metadata: MetadataWire
    spec: Any = None
    status: Any = None


class DaemonSetSpecWire(Wire, frozen=True):
    template: TemplateWire = TemplateWire()


class DaemonSetWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: DaemonSetSpecWire = DaemonSetSpecWire()


class PriorityClassWire(Wire, frozen=True):
    metadata: MetadataWire
    value: int = 0
    global_default: bool | None = None


class QueuedSpecWire(Wire, frozen=True):
    priority: int | None = None


class QueuedWorkloadWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: QueuedSpecWire = QueuedSpecWire()


class ScopeRequirementWire(Wire, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelectorWire(Wire, frozen=True):
    match_expressions: tuple[ScopeRequirementWire, ...] | None = None


class QuotaSpecWire(Wire, frozen=True):
    hard: Quantities | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelectorWire | None = None


class QuotaStatusWire(Wire, frozen=True):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuotaWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: QuotaSpecWire = QuotaSpecWire()
    status: QuotaStatusWire = QuotaStatusWire()


class DisruptionSpecWire(Wire, frozen=True):
    selector: LabelSelectorWire | None = None
    max_unavailable: int | str | None = None
    min_available: int | str | None = None


class DisruptionStatusWire(Wire, frozen=True):
    disruptions_allowed: int = 0


class PodDisruptionBudgetWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: DisruptionSpecWire = DisruptionSpecWire()
    status: DisruptionStatusWire = DisruptionStatusWire()


class NamespaceWire(Wire, frozen=True):
    metadata: MetadataWire


class ConfigMapWire(Wire, frozen=True):
    metadata: MetadataWire
    data: Texts | None = None


class ManagerWire(Wire, frozen=True):
    manager: str = ""
    subresource: str = ""
    time: str = ""
    fields: dict[str, dict[str, msgspec.Raw]] | None = msgspec.field(default=None, name="fieldsV1")


class ManagedMetadataWire(Wire, frozen=True):
    managed_fields: tuple[msgspec.Raw, ...] | None = None


class ManagedWire(Wire, frozen=True):
    """The field managers of an object. They are its largest part, so they are read only where they matter."""

    metadata: ManagedMetadataWire = ManagedMetadataWire()


class ListMetadataWire(Wire, frozen=True):
    resource_version: Annotated[str, 2] = ""
    continue_: Annotated[str | None, 3] = msgspec.field(default=None, name="continue")


class ListWire(Wire, frozen=True):
    """A page of a list. Its items are decoded one by one, so that a malformed one does not affect the others."""

    kind: str = ""
    metadata: ListMetadataWire = ListMetadataWire()
    items: list[msgspec.Raw] | None = None


class WatchWire(Wire, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


def ref_of(resource: Resource, metadata: MetadataWire) -> ObjectRef:
    return ObjectRef(resource.group, resource.kind, metadata.namespace or "", metadata.name)


def labels_of(texts: Texts | None) -> Labels:
    return tuple(sorted(texts.items())) if texts else ()


def resources_of(quantities: Quantities | None) -> Resources:
    """A resource list without entries that are null."""
    return Resources.parse({name: value for name, value in (quantities or {}).items() if value is not None})
