"""Pods as scheduling sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import cast

from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Requirement, Taint, Toleration

DEFAULT_SCHEDULER = "default-scheduler"
"""kube-scheduler's name, the default of `schedulerName`."""


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements that must all hold. `fields` are matchFields (only `metadata.name` exists)."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def holds(self, labels: Mapping[str, str], node: str) -> bool:
        """Whether a node with these labels and this name satisfies all of them. A term without any matches nothing."""
        if not self.expressions and not self.fields:
            return False
        return all(item.holds(labels.get(item.key)) for item in self.expressions) and all(
            item.holds(node) for item in self.fields
        )


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
    """A required term of pod affinity or anti-affinity. Without namespaces and namespace_selector: the pod's own namespace."""

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
    """A ResourceClaim that was made for one pod from a template, by the pod's status. owner: the pod's uid, which the claim must
    name as its owner too.
    """

    template: str
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything about a pod that scheduling looks at. Equal shapes form a group, so everything here is hashable.

    requests: as kube-scheduler counts them: the larger of init and app containers, sidecars, overhead, and `pods: 1`. Absent
    requests default to the limits, as in the API server. labels, node_selector: sorted.
    volume_claims, resource_claims, resource_claim_templates: names of PersistentVolumeClaims, ResourceClaims and
    ResourceClaimTemplates the pod uses. generated_claims: of a pending pod, in place of the templates they were made from.
    ephemeral_claims: those volume claims that must have been made for the pod, each with its pod's UID.
    runtime_class: the RuntimeClass whose overhead and scheduling are not in the spec yet; "" once admission has added them.
    own_taint: nodes made for it have this taint, and hold nothing that was made for something else.

    The rest is what placement finds out. attachment_terms: where its volumes and devices can be; one must hold, () is anywhere.
    They are apart from the affinity, since spread constraints do not look at them. obstacle: why no node at all can take it.
    attachment_places: the same by claim, for people; not compared, so that shapes are equal whatever their claims' names.
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
    """Cached, since a shape has many parts and is looked up again and again."""

    def selects(self, labels: Mapping[str, str], node: str = "") -> bool:
        """Whether node selector and required node affinity match a node with these labels and this name. Terms are alternatives."""
        if any(labels.get(key) != value for key, value in self.node_selector):
            return False
        return not self.required_node_terms or any(term.holds(labels, node) for term in self.required_node_terms)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(getattr(self, name) for name in _COMPARED)))
        return cast("int", self._hash)


_COMPARED = tuple(item.name for item in fields(PodShape) if item.compare)


FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Pod:
    """A real pod. Finished pods are not read, except those that used a provisioning request.

    node_name: None while pending. nominated_node: of a pending pod, the node that kube-scheduler makes room on for it
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
        """Whether it has ended and takes no room any more."""
        return self.phase in FINISHED_PHASES

    @property
    def is_daemon(self) -> bool:
        """Whether it is a daemon or mirror pod. Such pods come and go with their node and are never moved."""
        return self.owner_kind in {"DaemonSet", "Node"}
