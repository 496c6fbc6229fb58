"""Pods as scheduling sees them, the workloads they come from, what their RuntimeClass adds, and what keeps them from eviction.

Eviction is judged as Karpenter 1.14 does. Its code is `IsDoNotDisruptActive` (pkg/utils/pod) and the PodDisruptionBudget limits of pkg/utils/pdb.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import cast

from reconciler.model.errors import Invalid
from reconciler.model.nodes import DISRUPTED_TAINT, DO_NOT_DISRUPT
from reconciler.model.quantity import Resources, parse_duration
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import LabelSelector, Requirement, Taint, Toleration

DEFAULT_SCHEDULER = "default-scheduler"
"""kube-scheduler's name, the default of `schedulerName`."""
GROUP_OF_WORKLOAD: Mapping[str, str] = {
    "Deployment": "apps",
    "StatefulSet": "apps",
    "ReplicaSet": "apps",
    "ReplicationController": "",
    "Job": "batch",
    "CronJob": "batch",
}
"""The API group of each kind of workload that Kubernetes has."""


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
class PodShape:
    """Everything about a pod that scheduling looks at. Equal shapes form a group, so everything here is hashable.

    requests: as kube-scheduler counts them: the larger of init and app containers, sidecars, overhead, and `pods: 1`. Absent
    requests default to the limits, as in the API server. labels, node_selector: sorted.
    volume_claims: names of the PersistentVolumeClaims that the pod uses. claims_devices: whether it has resource claims (Dynamic Resource Allocation), which are not judged.
    runtime_class: the RuntimeClass whose overhead and scheduling are not in the spec yet; "" once admission has added them.
    own_taint: nodes made for it have this taint, and hold nothing that was made for something else.

    The rest is what placement finds out. attachment_terms: where its volumes can be; one must hold, () is anywhere.
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
    claims_devices: bool = False
    scheduler_name: str = DEFAULT_SCHEDULER
    priority_class_name: str = ""
    runtime_class: str = ""
    attachment_terms: tuple[NodeSelectorTerm, ...] = ()
    obstacle: str = ""
    own_taint: Taint | None = None
    attachment_places: tuple[tuple[str, tuple[NodeSelectorTerm, ...]], ...] = field(compare=False, default=())
    _hash: int | None = field(init=False, repr=False, compare=False, default=None)
    """Cached, since a shape has many parts and is looked up again and again."""

    @property
    def affinity_terms(self) -> tuple[PodAffinityTerm, ...]:
        """All of affinity and anti-affinity, preferred ones too."""
        weighted = (*self.preferred_pod_affinity, *self.preferred_pod_anti_affinity)
        return (*self.pod_affinity, *self.pod_anti_affinity, *(item.term for item in weighted))

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
CLAIMS_NOT_JUDGED = "resource claims (Dynamic Resource Allocation), which headroom does not judge"


def claims_words(owner: object) -> tuple[str, str]:
    """Message and hint of the finding about a buffer or request whose pods, declared by `owner`, have resource claims."""
    message = f"{owner} names {CLAIMS_NOT_JUDGED}: its pods find no place, and no node is made for them"
    return message, "request an extended resource of a device plugin instead, such as nvidia.com/gpu: 1"


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


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """One ResourceQuota, with compute resources and the number of pods only. `requests.cpu` is `cpu` here, so a name may occur twice in `hard`.

    scopes: each as a requirement on the scope's name (`NotBestEffort` Exists, `PriorityClass` In …). The quota counts pods that
    meet all of them.
    """

    namespace: str
    name: str
    hard: tuple[tuple[str, int], ...]
    used: Resources = field(default_factory=Resources)
    scopes: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """allowed: `status.disruptionsAllowed`, how many of its pods may be evicted now. selector None: matches nothing.
    allows_none: its spec never allows an eviction (`maxUnavailable: 0` or `0%`, `minAvailable: 100%`)."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    allows_none: bool = False

    def covers(self, pod: Pod) -> bool:
        """Whether the pod is one of those that the budget protects."""
        matches = self.selector is not None and self.selector.matches(dict(pod.shape.labels))
        return pod.namespace == self.namespace and matches


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """overhead: on top of the containers' requests (KEP-688); node_selector, tolerations: joined to the pod's own."""

    name: str
    overhead: Resources = field(default_factory=Resources)
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


def admitted(shape: PodShape, classes: Iterable[RuntimeClass]) -> PodShape:
    """The shape as the API server's RuntimeClass admission would make it; unchanged when it names no class.

    `runtime_class` is empty afterwards, unless the class does not exist and so could not be applied.
    """
    runtime_class = (
        next((item for item in classes if item.name == shape.runtime_class), None) if shape.runtime_class else None
    )
    if runtime_class is None:
        return shape
    return replace(
        shape,
        requests=shape.requests + runtime_class.overhead,
        node_selector=tuple(sorted({*shape.node_selector, *runtime_class.node_selector})),
        tolerations=(
            *shape.tolerations,
            *(item for item in runtime_class.tolerations if item not in shape.tolerations),
        ),
        runtime_class="",
    )


@dataclass(frozen=True, slots=True)
class Workload:
    """Anything with a scale subresource, or a PodTemplate."""

    ref: ObjectRef
    shape: PodShape | None
    """None if it has no pod template. The newest pod that matches `selector` then gives the shape."""
    replicas: int | None = None
    """`spec.replicas` as written; None if absent, and for a PodTemplate."""
    observed_replicas: int | None = None
    """`status.replicas`."""
    selector: LabelSelector | None = None
    replicas_manager: str | None = None
    """The field manager other than headroom that owns `spec.replicas` in the cluster."""
    generation: int | None = None
    position: SourcePosition | None = None


_DAEMONS_TOLERATE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists", "", effect)
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet with the shape of its template. One of its pods runs on each node that fits.

    template_generation: how often the template has changed, which each pod has as a label; "" if unknown."""

    namespace: str
    name: str
    shape: PodShape
    template_generation: str = ""

    def is_up_to_date(self, pod: Pod) -> bool:
        """Whether one of its pods is of the template as it is now, as far as labels tell."""
        made_from = dict(pod.shape.labels).get("pod-template-generation", "")
        return not (made_from and self.template_generation) or made_from == self.template_generation

    @property
    def pod_shape(self) -> PodShape:
        """Of its pods, with the tolerations that the daemon set controller adds (AddOrUpdateDaemonPodTolerations in kubernetes'
        pkg/controller/daemon/util)."""
        return replace(self.shape, tolerations=(*self.shape.tolerations, *_DAEMONS_TOLERATE))


@dataclass(frozen=True, slots=True)
class QueuedWorkload:
    """What Kueue queues as one, such as a Job. It makes the ProvisioningRequests of the Workload, in its order of priority."""

    namespace: str
    name: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. value: the priority of its pods; global_default: also of pods that name no class."""

    name: str
    value: int
    global_default: bool = False
    position: SourcePosition | None = None


_DISRUPTED = Taint(DISRUPTED_TAINT, "", "NoSchedule")


def is_kept(pod: Pod, now: datetime) -> bool:
    """Whether do-not-disrupt is `true`, or a duration from the pod's start that has not passed.

    The view has no start times, so the creation time is used.
    """
    text = dict(pod.annotations).get(DO_NOT_DISRUPT)
    if text is None or text == "true":
        return text is not None
    try:
        duration = parse_duration(text)
    except Invalid:
        return False  # Karpenter ignores any other value
    return pod.created is None or now - pod.created < duration


def is_never_evicted(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> bool:
    """Whether a budget allows none of its pods to go, or several budgets cover the pod, which the eviction API refuses.

    Pods that tolerate the taint of disrupted nodes are not evicted, so no budget applies to them. Unlike Karpenter, this
    ignores `unhealthyPodEvictionPolicy: AlwaysAllow`, under which unready pods may go.
    """
    covering = _covering(pod, budgets)
    return len(covering) > 1 or any(budget.allows_none for budget in covering)


def why_not_evicted_now(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> str:
    """Why Karpenter cannot evict the pod at present; "" if it can. Daemons and pods that are ending never stop it."""
    if pod.is_daemon or pod.deleting:
        return ""
    if is_kept(pod, now):
        return "do-not-disrupt"
    covering = _covering(pod, budgets)
    if len(covering) > 1:
        return f"{len(covering)} PodDisruptionBudgets, where one at most may cover a pod"
    return next((f"PodDisruptionBudget {budget.name}" for budget in covering if budget.allowed <= 0), "")


def _covering(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """The budgets that apply to the pod: none where it tolerates the taint of disrupted nodes, since then nothing evicts it."""
    if any(toleration.tolerates(_DISRUPTED) for toleration in pod.shape.tolerations):
        return []
    return [budget for budget in budgets if budget.covers(pod)]
