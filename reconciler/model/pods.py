"""Pods as scheduling sees them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import cast

from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Requirement, Taint, Toleration

DEFAULT_SCHEDULER = "default-scheduler"
"""kube-scheduler, as a pod that names no scheduler has it."""


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements that hold together; `fields` are matchFields (only `metadata.name` exists)."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    """A term of `preferredDuringSchedulingIgnoredDuringExecution` of node affinity. weight: 1 to 100."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """A topologySpreadConstraint. `when_unsatisfiable` is DoNotSchedule or ScheduleAnyway."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    selector: LabelSelector | None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """namespaces empty and no namespace_selector: the pod's own namespace."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WeightedPodAffinityTerm:
    """A preferred term of pod affinity or anti-affinity. weight: 1 to 100."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes. address: the `hostIP`."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - Kubernetes' own default for an absent hostIP, nothing is bound here


@dataclass(frozen=True, slots=True)
class GeneratedClaim:
    """A ResourceClaim that was made for one pod from a template, by the pod's status. owner: the pod's uid; it is the pod's
    own only where it says so itself.
    """

    template: str
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything about a pod that scheduling looks at; equal shapes form a group, so everything here is hashable.

    requests: what kube-scheduler counts: the larger of init and app containers, sidecars, overhead, and `pods: 1`. Where requests
    are absent, they are the limits, as the API server has it. labels, node_selector: sorted.
    volume_claims, resource_claims, resource_claim_templates: names of PersistentVolumeClaims, ResourceClaims and
    ResourceClaimTemplates the pod uses. generated_claims: of a pod that waits, in place of the templates they were made from.
    ephemeral_claims: those volume claims that must have been made for the pod, each with its pod's UID.
    runtime_class: the RuntimeClass whose overhead and scheduling are not in the spec yet ("" when admission has been).
    attachment_terms: where its volumes and devices can be had, of which one must hold (() anywhere). They stand beside the
    affinity, since spread constraints do not look at them. obstacle: why no node whatever can take it. Both
    are placement's own finding, and so is attachment_places: where by claim, for people, so that shapes are alike whatever their
    claims are called.
    own_taint: nodes that are made for it have this taint, and hold nothing that was not made for the same.
    """

    namespace: str
    requests: Resources = field(default_factory=Resources)
    labels: tuple[tuple[str, str], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    required_node_terms: tuple[NodeSelectorTerm, ...] = ()
    preferred_node_terms: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread: tuple[TopologySpread, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[WeightedPodAffinityTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[WeightedPodAffinityTerm, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    ephemeral_claims: tuple[tuple[str, str], ...] = ()
    resource_claims: tuple[str, ...] = ()
    resource_claim_templates: tuple[str, ...] = ()
    generated_claims: tuple[GeneratedClaim, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    priority_class_name: str = ""
    runtime_class: str = ""
    attachment_terms: tuple[NodeSelectorTerm, ...] = ()
    obstacle: str = ""
    own_taint: Taint | None = None
    attachment_places: tuple[tuple[str, tuple[NodeSelectorTerm, ...]], ...] = field(compare=False, default=())
    _hash: int | None = field(init=False, repr=False, compare=False, default=None)
    """Kept, since there are many parts to look at, and shapes are looked up again and again."""

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(getattr(self, name) for name in _COMPARED)))
        return cast("int", self._hash)


_COMPARED = tuple(item.name for item in fields(PodShape) if item.compare)


FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Pod:
    """A real pod. Finished ones are left out where they are read, but for those that used a provisioning request. `node_name` None is
    pending. nominated_node: of one that waits, the node that kube-scheduler has chosen for it and makes room on
    (`status.nominatedNodeName`); "" for none."""

    namespace: str
    name: str
    shape: PodShape
    node_name: str | None = None
    nominated_node: str = ""
    uid: str = ""
    phase: str = "Pending"
    priority: int = 0
    created: datetime | None = None
    deleting: bool = False
    gated: bool = False
    owner_kind: str = ""
    owner_name: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    """Only those that headroom acts on: do-not-disrupt and the provisioning request consumption pair."""

    @property
    def is_finished(self) -> bool:
        """It has ended, and takes no room any more."""
        return self.phase in FINISHED_PHASES

    @property
    def is_daemon(self) -> bool:
        """Daemon and mirror pods come and go with their node and are never moved."""
        return self.owner_kind in {"DaemonSet", "Node"}
