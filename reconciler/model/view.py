"""The cluster as one pass sees it: an immutable snapshot, in which each node is joined with the NodeClaim it was launched from, by Karpenter's
own rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from operator import attrgetter
from typing import Any

from reconciler.model.attachments import (
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
)
from reconciler.model.findings import Finding
from reconciler.model.nodes import (
    HOLDS_ANNOTATION,
    INITIALIZED_LABEL,
    KARPENTER_GROUP,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    UNREGISTERED_TAINT,
    InstanceType,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.placement import read_holdings
from reconciler.model.pods import (
    DaemonSet,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    QueuedWorkload,
    ResourceQuota,
    RuntimeClass,
    Workload,
)
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory

_name = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of the cluster, with a node, a NodeClaim, or both.

    node: None while the machine has not joined the cluster, and once its node is gone.
    node_claim: None where Karpenter did not make the node.
    """

    node: Node | None
    node_claim: NodeClaim | None

    @property
    def name(self) -> str:
        """The node's name, or the NodeClaim's while there is no node."""
        side = self.node or self.node_claim
        assert side is not None
        return side.name

    @property
    def sides(self) -> tuple[Node | NodeClaim, ...]:
        """Node and NodeClaim, as far as they are there."""
        return tuple(side for side in (self.node, self.node_claim) if side is not None)

    @property
    def node_pool(self) -> str:
        """The name of the NodePool that it belongs to, "" for none."""
        return self.label(NODEPOOL_LABEL) or ""

    def label(self, key: str) -> str | None:
        """The label's value, the node's first, by which kube-scheduler and Karpenter go. Until the node is registered, the NodeClaim's
        first: Karpenter copies its labels to the node then (`StateNode.Labels` in pkg/controllers/state/statenode.go)."""
        first, second = (self.node_claim, self.node) if self.awaits_registration else (self.node, self.node_claim)
        found = None if first is None else first.label(key)
        return found if found is not None or second is None else second.label(key)

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted or drained, for any reason."""
        return any(side.deleting for side in self.sides) or (self.node is not None and self.node.is_disrupted)

    @property
    def is_held(self) -> bool:
        """Whether the node or the NodeClaim has headroom's mark."""
        return any(side.is_held for side in self.sides)

    @property
    def held_for(self) -> str:
        """What it holds, by its `headroom.dev/holds` annotation. The node's is newer than the NodeClaim's.

        "" once it is released, even if the annotation is still there: chunks that have left must not be drawn back.
        """
        found = (side.annotation(HOLDS_ANNOTATION) for side in self.sides) if self.is_held else ()
        return next((words for words in found if words), "")

    @property
    def holders(self) -> frozenset[str]:
        """The demands that it holds chunks of, each by its reference as text."""
        return frozenset(demand for demand, _ in read_holdings(self.held_for))

    @property
    def is_initialized(self) -> bool:
        """Whether its node is complete. A node that Karpenter did not make is, from the start."""
        node, claim = self.node, self.node_claim
        if node is None:
            return False
        if claim is None and node.label(NODEPOOL_LABEL) is None:
            return True
        return node.label(INITIALIZED_LABEL) == "true" or (
            claim is not None and claim.condition("Initialized") == "True"
        )

    @property
    def allocatable(self) -> Resources:
        """What pods may request there, as far as it is known. Until the node is initialized, the NodeClaim fills the gaps, since devices are
        reported late."""
        promised = Resources() if self.node_claim is None or self.is_initialized else self.node_claim.allocatable
        reported = Resources() if self.node is None else self.node.allocatable
        return Resources.of(dict(promised) | dict(reported)) if promised else reported

    @property
    def why_closed(self) -> str:
        """Why no pod will be sent there any more, in words that begin with "is"; "" when there is no reason."""
        if any(side.deleting for side in self.sides):
            return "is being deleted"
        if self.node is None:
            return ""
        return "is being disrupted" if self.node.is_disrupted else "is cordoned" if self.node.unschedulable else ""

    @property
    def awaits_registration(self) -> bool:
        """Whether the node has joined the cluster, but Karpenter has not copied the NodeClaim's labels and taints to it yet."""
        node, claim = self.node, self.node_claim
        if node is None or claim is None or claim.node_name is not None:
            return False
        return claim.condition("Registered") != "True" and node.label(REGISTERED_LABEL) != "true"


def joined_machines(nodes: Iterable[Node], node_claims: Iterable[NodeClaim]) -> tuple[Machine, ...]:
    """Nodes by name, each with its NodeClaim, then NodeClaims without a node by name.

    A NodeClaim belongs to the node with its `status.providerID`. Karpenter joins by nothing else, so two different providerIDs are
    two machines, whatever `status.nodeName` says. While either has no providerID, `status.nodeName` decides. While the NodeClaim
    has neither, the node's owner reference does.

    Nodes and NodeClaims are watched separately, so a node may be seen while its NodeClaim still looks as it did before the launch.
    Until the node is registered, nothing tells which of the pool's NodeClaims it belongs to. A node is left out while an unmatched
    NodeClaim might be its own, since both would be one machine.

    Every other node is a machine, since kube-scheduler binds pods to each of two nodes that share a providerID. Their NodeClaim
    goes with the node that it names, otherwise with the first by name.

    Of several NodeClaims of one machine only one counts, so that the machine is not counted twice. One that matches by
    providerID is preferred, then one being deleted (the machine goes with it), then the first by name.
    """
    by_name = sorted(nodes, key=_name)
    found = _NodeIndex(by_name)
    claim_of: dict[str, NodeClaim] = {}
    others: list[NodeClaim] = []
    for claim in sorted(node_claims, key=_name):
        node = found.node_of(claim)
        if node is None:
            others.append(claim)
        elif node.name not in claim_of or _preference(claim, node) < _preference(claim_of[node.name], node):
            claim_of[node.name] = claim
    early = _early_nodes((node for node in by_name if node.name not in claim_of), others)
    machines = [Machine(node, claim_of.pop(node.name, None)) for node in by_name if node.name not in early]
    return (*machines, *(Machine(None, claim) for claim in _one_per_machine(others)))


def _early_nodes(alone: Iterable[Node], without_node: Iterable[NodeClaim]) -> frozenset[str]:
    """The names of nodes whose NodeClaim does not show its launch yet. Both arguments: by name, and not joined so far."""
    launching = Counter(
        claim.label(NODEPOOL_LABEL) or "" for claim in without_node if not (claim.provider_id or claim.node_name)
    )
    early = []
    for node in alone if launching else ():
        pool = node.label(NODEPOOL_LABEL) or ""
        registered = node.label(REGISTERED_LABEL) == "true"
        if launching[pool] and not registered and any(taint.key == UNREGISTERED_TAINT for taint in node.taints):
            launching[pool] -= 1
            early.append(node.name)
    return frozenset(early)


class _NodeIndex:
    def __init__(self, nodes: Sequence[Node]) -> None:
        """nodes: sorted by name."""
        self._by_name: Mapping[str, Node] = {node.name: node for node in nodes}
        self._by_provider_id: dict[str, Node] = {}
        self._by_owner: dict[str, Node] = {}
        for node in nodes:
            if node.provider_id:
                self._by_provider_id.setdefault(node.provider_id, node)
            if node.node_claim_uid:
                self._by_owner.setdefault(node.node_claim_uid, node)

    def node_of(self, claim: NodeClaim) -> Node | None:
        if not claim.provider_id and not claim.node_name:
            return self._by_owner.get(claim.uid)
        named = self._by_name.get(claim.node_name or "")
        if not claim.provider_id or (named is not None and named.provider_id == claim.provider_id):
            return named
        matching = self._by_provider_id.get(claim.provider_id)
        if matching is None and named is not None and not named.provider_id:
            return named
        return matching


def _preference(claim: NodeClaim, node: Node) -> tuple[bool, bool]:
    """The sort key: the NodeClaim with the least counts; of equals the first by name."""
    matches = bool(claim.provider_id) and claim.provider_id == node.provider_id
    return (not matches, not claim.deleting)


def _one_per_machine(claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """One NodeClaim for each providerID, since those that share one are one machine. claims: without a node, by name."""
    kept: dict[str, NodeClaim] = {}
    for claim in claims:
        key = f"id {claim.provider_id}" if claim.provider_id else f"name {claim.name}"
        earlier = kept.get(key)
        if earlier is None or (claim.deleting and not earlier.deleting):
            kept[key] = claim
    return sorted(kept.values(), key=_name)


Manifest = Mapping[str, Any]
"""A Kubernetes object as plain JSON values."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    """One object of a declared kind (buffers, requests, NodePools, PodTemplates, schedules) as the API server has it.

    managers: by field manager, the top-level fields that it owns as dotted paths ("spec.replicas"), and each condition by type
    ("status.conditions.Ready"). From managedFields; empty where unknown. status_writes: by field manager, when it last changed
    the status, RFC 3339. scaled_by: the manager that has set `spec.replicas` through the scale subresource; "" for none.
    """

    ref: ObjectRef
    body: Manifest
    managers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    status_writes: Mapping[str, str] = field(default_factory=dict)
    scaled_by: str = ""

    @property
    def uid(self) -> str:
        """Its `metadata.uid`, "" where it has none."""
        return str((self.body.get("metadata") or {}).get("uid", ""))

    @property
    def scaled_to(self) -> int | None:
        """The replicas that `scaled_by` has set. They count, whatever is declared, and are never fought over; None for none."""
        replicas = (self.body.get("spec") or {}).get("replicas") if self.scaled_by else None
        return replicas if isinstance(replicas, int) else None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Every tuple is sorted by namespace and name.

    revision: changes whenever anything in the view does; equal revisions mean equal views.
    complete: False if something could not be read (`gaps` says what); then nothing may be deleted or released.
    unread: kinds that could not be read in full, so that a missing object may still exist.
    apis: (group, kind) → versions served, the preferred first; empty where unknown (offline).
    catalog: instance types that came with the cluster (a snapshot's, the embedded cluster's), else empty.
    reduced: objects may lack fields that planning does not need (a snapshot leaves them out), so an absent field says nothing.
    findings: what the user should know about the view's origin (such as files of a snapshot that are not read).
    nominated: pods for which kube-scheduler has chosen a node, once `with_nominated` has put those on it that fit.
    clock_skew: this machine's time less the cluster's, to correct ages. clock_is_known: False where
    the API server does not tell the time. queued: Kueue's Workloads. finished_pods: those that used a provisioning request and have ended; `pods` lacks them.
    """

    revision: str = ""
    complete: bool = True
    unread: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    pods: tuple[Pod, ...] = ()
    finished_pods: tuple[Pod, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    workloads: tuple[Workload, ...] = ()
    queued: tuple[QueuedWorkload, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()
    storage: Storage = field(default_factory=Storage)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    objects: Mapping[ObjectRef, LiveObject] = field(default_factory=dict)
    apis: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inventory: Inventory = field(default_factory=Inventory)
    catalog: tuple[InstanceType, ...] = ()
    reduced: bool = False
    findings: tuple[Finding, ...] = ()
    nominated: tuple[Pod, ...] = ()
    clock_skew: timedelta = timedelta(0)
    clock_is_known: bool = True
    _nodes_in_use: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)
    _machines: tuple[Machine, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Nodes joined with their NodeClaims: first all nodes by name, then NodeClaims without a node. Computed once per view."""
        if self._machines is None:
            object.__setattr__(self, "_machines", joined_machines(self.nodes, self.node_claims))
        assert self._machines is not None
        return self._machines

    @property
    def nodes_in_use(self) -> frozenset[str]:
        """The names of nodes with real pods other than daemons. Computed once per view."""
        if self._nodes_in_use is None:
            names = (pod.node_name for pod in self.pods if pod.node_name is not None and not pod.is_daemon)
            object.__setattr__(self, "_nodes_in_use", frozenset(names))
        assert self._nodes_in_use is not None
        return self._nodes_in_use

    def every_object(self) -> Iterator[tuple[ObjectRef, object]]:
        """Each object that a pass looks at; one of a declared kind may come twice."""
        for holder in (self, self.storage):
            for item in fields(holder):
                values = getattr(holder, item.name)
                found = [(identity_of(value), value) for value in values] if isinstance(values, tuple) else []
                yield from ((ref, value) for ref, value in found if ref is not None)
        yield from self.objects.items()
        yield from ((_namespace(name), labels) for name, labels in self.namespaces.items())

    def without(self, objects: Mapping[ObjectRef, str]) -> ClusterView:
        """The view as if these objects could not be read. objects: each with the reason."""
        if not objects:
            return self

        def left(holder: Any) -> dict[str, Any]:
            found = {item.name: getattr(holder, item.name) for item in fields(holder) if item.init}
            return {
                name: tuple(value for value in values if identity_of(value) not in objects)
                for name, values in found.items()
                if isinstance(values, tuple) and not objects.keys().isdisjoint(map(identity_of, values))
            }

        return replace(
            self,
            **left(self)
            | {
                "complete": False,
                "unread": self.unread | {ref.kind for ref in objects},
                "gaps": tuple(sorted((*self.gaps, *objects.values()))),
                "storage": replace(self.storage, **left(self.storage)),
                "objects": {ref: item for ref, item in self.objects.items() if ref not in objects},
                "namespaces": {name: item for name, item in self.namespaces.items() if _namespace(name) not in objects},
            },
        )


_KINDS: Mapping[type, tuple[str, str]] = {
    DaemonSet: ("apps", "DaemonSet"),
    InstanceType: ("", "InstanceType"),
    Node: ("", "Node"),
    NodeClaim: (KARPENTER_GROUP, "NodeClaim"),
    NodePool: (KARPENTER_GROUP, "NodePool"),
    PersistentVolume: ("", "PersistentVolume"),
    Pod: ("", "Pod"),
    PodDisruptionBudget: ("policy", "PodDisruptionBudget"),
    PriorityClass: ("scheduling.k8s.io", "PriorityClass"),
    QueuedWorkload: ("kueue.x-k8s.io", "Workload"),
    ResourceQuota: ("", "ResourceQuota"),
    RuntimeClass: ("node.k8s.io", "RuntimeClass"),
    StorageClass: ("storage.k8s.io", "StorageClass"),
    VolumeClaim: ("", "PersistentVolumeClaim"),
}


def _namespace(name: str) -> ObjectRef:
    return ObjectRef("", "Namespace", "", name)


def identity_of(value: object) -> ObjectRef | None:
    """The object that a typed value stands for, or is about; None for what stands for no object."""
    ref = value if isinstance(value, ObjectRef) else getattr(value, "ref", None)
    if isinstance(ref, ObjectRef):
        return ref
    kind = _KINDS.get(type(value))
    if kind is None:
        return None
    return ObjectRef(*kind, getattr(value, "namespace", ""), getattr(value, "name", ""))
