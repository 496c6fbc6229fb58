"""The parts of PodSpecs and of workloads that headroom looks at, in their wire format.

As in the API server, unknown fields are ignored and an explicit null is an absent field. Enumerations stay strings, so that one
unusual pod does not make a page of ten thousand unreadable. `pod_shape.shape_of` checks them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class Wire(msgspec.Struct, rename="camel", frozen=True, gc=False, omit_defaults=True):
    """Base of every wire struct. Wire data has no cycles, so garbage collection is off.

    A number beside a type is the field's in Kubernetes' protobuf (generated.proto), for kinds that are also read from that. Two numbers
    lead through a message that JSON has inline.
    """


class Once(int):
    """The number of a field that is often equal in many objects, and then read once."""


class SelectorRequirementWire(Wire, frozen=True):
    key: Annotated[str, 1]
    operator: Annotated[str, 2]
    values: Annotated[tuple[str, ...] | None, 3] = None


class LabelSelectorWire(Wire, frozen=True):
    match_labels: Annotated[dict[str, str] | None, 1] = None
    match_expressions: Annotated[tuple[SelectorRequirementWire, ...] | None, 2] = None


class NodeSelectorTermWire(Wire, frozen=True):
    match_expressions: Annotated[tuple[SelectorRequirementWire, ...] | None, 1] = None
    match_fields: Annotated[tuple[SelectorRequirementWire, ...] | None, 2] = None


class NodeSelectorWire(Wire, frozen=True):
    node_selector_terms: Annotated[tuple[NodeSelectorTermWire, ...] | None, 1] = None


class PreferredNodeTermWire(Wire, frozen=True):
    weight: Annotated[int, 1]
    preference: Annotated[NodeSelectorTermWire, 2]


class NodeAffinityWire(Wire, frozen=True):
    required: Annotated[NodeSelectorWire | None, 1] = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Annotated[tuple[PreferredNodeTermWire, ...] | None, 2] = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTermWire(Wire, frozen=True):
    topology_key: Annotated[str, 3]
    label_selector: Annotated[LabelSelectorWire | None, 1] = None
    namespaces: Annotated[tuple[str, ...] | None, 2] = None
    namespace_selector: Annotated[LabelSelectorWire | None, 4] = None
    match_label_keys: Annotated[tuple[str, ...] | None, 5] = None
    mismatch_label_keys: Annotated[tuple[str, ...] | None, 6] = None


class WeightedPodAffinityTermWire(Wire, frozen=True):
    weight: Annotated[int, 1]
    pod_affinity_term: Annotated[PodAffinityTermWire, 2]


class PodAffinityWire(Wire, frozen=True):
    """podAffinity, and podAntiAffinity, which has the same fields."""

    required: Annotated[tuple[PodAffinityTermWire, ...] | None, 1] = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Annotated[tuple[WeightedPodAffinityTermWire, ...] | None, 2] = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AffinityWire(Wire, frozen=True):
    node_affinity: Annotated[NodeAffinityWire | None, 1] = None
    pod_affinity: Annotated[PodAffinityWire | None, 2] = None
    pod_anti_affinity: Annotated[PodAffinityWire | None, 3] = None


class TolerationWire(Wire, frozen=True):
    key: Annotated[str | None, 1] = None
    operator: Annotated[str | None, 2] = None
    value: Annotated[str | None, 3] = None
    effect: Annotated[str | None, 4] = None


class TopologySpreadWire(Wire, frozen=True):
    topology_key: Annotated[str, 2]
    max_skew: Annotated[int, 1]
    when_unsatisfiable: Annotated[str, 3]
    label_selector: Annotated[LabelSelectorWire | None, 4] = None
    min_domains: Annotated[int | None, 5] = None
    node_affinity_policy: Annotated[str | None, 6] = None
    node_taints_policy: Annotated[str | None, 7] = None
    match_label_keys: Annotated[tuple[str, ...] | None, 8] = None


Quantities = dict[str, str | int | float | None]
"""A resource list as written: quantities are strings or bare numbers."""


class ResourcesWire(Wire, frozen=True):
    requests: Annotated[Quantities | None, 2] = None
    limits: Annotated[Quantities | None, 1] = None


class PortWire(Wire, frozen=True):
    container_port: Annotated[int, 3] = 0
    host_port: Annotated[int | None, 2] = None
    protocol: Annotated[str | None, 4] = None
    host_ip: Annotated[str | None, 5] = msgspec.field(default=None, name="hostIP")


class ContainerWire(Wire, frozen=True):
    name: Annotated[str, 1] = ""
    resources: Annotated[ResourcesWire | None, Once(8)] = None
    ports: Annotated[tuple[PortWire, ...] | None, Once(6)] = None
    restart_policy: Annotated[str | None, 24] = None


class ClaimVolumeWire(Wire, frozen=True):
    claim_name: Annotated[str, 1]


class EphemeralVolumeWire(Wire, frozen=True):
    """Only its presence matters: the claim is named after the pod and the volume."""


class PodVolumeWire(Wire, frozen=True):
    name: Annotated[str, 1] = ""
    persistent_volume_claim: Annotated[ClaimVolumeWire | None, 2, 10] = None
    ephemeral: Annotated[EphemeralVolumeWire | None, 2, 29] = None


class ResourceClaimWire(Wire, frozen=True):
    """Only its presence matters."""


class SchedulingGateWire(Wire, frozen=True):
    name: Annotated[str, 1] = ""


class PodSpecWire(Wire, frozen=True):
    containers: Annotated[tuple[ContainerWire, ...] | None, 2] = None
    init_containers: Annotated[tuple[ContainerWire, ...] | None, 20] = None
    resources: Annotated[ResourcesWire | None, Once(40)] = None
    overhead: Annotated[Quantities | None, Once(32)] = None
    node_selector: Annotated[dict[str, str] | None, Once(7)] = None
    affinity: Annotated[AffinityWire | None, Once(18)] = None
    tolerations: Annotated[tuple[TolerationWire, ...] | None, Once(22)] = None
    topology_spread_constraints: Annotated[tuple[TopologySpreadWire, ...] | None, Once(33)] = None
    volumes: Annotated[tuple[PodVolumeWire, ...] | None, 1] = None
    resource_claims: Annotated[tuple[ResourceClaimWire, ...] | None, Once(39)] = None
    host_network: Annotated[bool | None, 11] = None
    scheduler_name: Annotated[str | None, 19] = None
    priority_class_name: Annotated[str | None, 24] = None
    runtime_class_name: Annotated[str | None, 29] = None
    priority: Annotated[int | None, 25] = None
    node_name: Annotated[str | None, 10] = None
    scheduling_gates: Annotated[tuple[SchedulingGateWire, ...] | None, Once(38)] = None


class TemplateMetadataWire(Wire, frozen=True):
    labels: dict[str, str] | None = None


class TemplateWire(Wire, frozen=True):
    metadata: TemplateMetadataWire | None = None
    spec: PodSpecWire = PodSpecWire()


class WorkloadSpecWire(Wire, frozen=True):
    """The spec of every workload kind. `selector` is a LabelSelector, in a ReplicationController a bare map."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    selector: dict[str, Any] | None = None
    template: TemplateWire | None = None
    job_template: JobTemplateWire | None = None


class JobTemplateWire(Wire, frozen=True):
    spec: WorkloadSpecWire = WorkloadSpecWire()


class WorkloadConditionWire(Wire, frozen=True):
    type: str = ""
    status: str = ""


class WorkloadStatusWire(Wire, frozen=True):
    """The status of every workload kind. conditions: a Job's say that it has ended."""

    replicas: int | None = None
    succeeded: int | None = None
    active: int | None = None
    conditions: tuple[WorkloadConditionWire, ...] | None = None
