"""The part of a PodSpec that scheduling looks at, in its wire format.

As in the API server, unknown fields are ignored and an explicit null is an absent field. Enumerations stay strings, so that one
unusual pod does not make a page of ten thousand unreadable. `pod_shape.shape_of` checks them.
"""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Base of every wire struct. Wire data has no cycles, so garbage collection is off."""


class SelectorRequirementWire(Wire, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelectorWire(Wire, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[SelectorRequirementWire, ...] | None = None


class NodeSelectorTermWire(Wire, frozen=True):
    match_expressions: tuple[SelectorRequirementWire, ...] | None = None
    match_fields: tuple[SelectorRequirementWire, ...] | None = None


class NodeSelectorWire(Wire, frozen=True):
    node_selector_terms: tuple[NodeSelectorTermWire, ...] | None = None


class PreferredNodeTermWire(Wire, frozen=True):
    weight: int
    preference: NodeSelectorTermWire


class NodeAffinityWire(Wire, frozen=True):
    required: NodeSelectorWire | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredNodeTermWire, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTermWire(Wire, frozen=True):
    topology_key: str
    label_selector: LabelSelectorWire | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelectorWire | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTermWire(Wire, frozen=True):
    weight: int
    pod_affinity_term: PodAffinityTermWire


class PodAffinityWire(Wire, frozen=True):
    """podAffinity, and podAntiAffinity, which has the same fields."""

    required: tuple[PodAffinityTermWire, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTermWire, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AffinityWire(Wire, frozen=True):
    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodAffinityWire | None = None
    pod_anti_affinity: PodAffinityWire | None = None


class TolerationWire(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class TopologySpreadWire(Wire, frozen=True):
    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    label_selector: LabelSelectorWire | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


Quantities = dict[str, str | int | float | None]
"""A resource list as written: quantities are strings or bare numbers."""


class ResourcesWire(Wire, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class PortWire(Wire, frozen=True):
    container_port: int = 0
    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class ContainerWire(Wire, frozen=True):
    name: str = ""
    resources: ResourcesWire | None = None
    ports: tuple[PortWire, ...] | None = None
    restart_policy: str | None = None


class ClaimVolumeWire(Wire, frozen=True):
    claim_name: str


class EphemeralVolumeWire(Wire, frozen=True):
    """Only its presence matters: the claim is named after the pod and the volume."""


class PodVolumeWire(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolumeWire | None = None
    ephemeral: EphemeralVolumeWire | None = None


class ResourceClaimWire(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGateWire(Wire, frozen=True):
    name: str = ""


class PodSpecWire(Wire, frozen=True):
    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    resources: ResourcesWire | None = None
    overhead: Quantities | None = None
    node_selector: dict[str, str] | None = None
    affinity: AffinityWire | None = None
    tolerations: tuple[TolerationWire, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadWire, ...] | None = None
    volumes: tuple[PodVolumeWire, ...] | None = None
    resource_claims: tuple[ResourceClaimWire, ...] | None = None
    host_network: bool | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None
    priority: int | None = None
    node_name: str | None = None
    scheduling_gates: tuple[SchedulingGateWire, ...] | None = None
