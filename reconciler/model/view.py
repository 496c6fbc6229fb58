"""The cluster as one pass sees it: an immutable snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

from reconciler.model.attachments import (
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
)
from reconciler.model.findings import Finding
from reconciler.model.machines import Machine, joined_machines
from reconciler.model.nodes import (
    KARPENTER_GROUP,
    InstanceType,
    Node,
    NodeClaim,
    NodePool,
)
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
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory

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
    def generation(self) -> int | None:
        """Its `metadata.generation`; None where it has none."""
        return (self.body.get("metadata") or {}).get("generation")

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
    clock_skew: this machine's time less the cluster's, to correct ages. queued: Kueue's Workloads. finished_pods: those that used a
    provisioning request and have ended; `pods` lacks them.
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
    _nodes_in_use: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)
    _machines: tuple[Machine, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Nodes joined with their NodeClaims: first all nodes by name, then NodeClaims without a node. Computed once per view."""
        if self._machines is None:
            object.__setattr__(self, "_machines", joined_machines(self.nodes, self.node_claims))
        assert self._machines is not None
        return self._machines

    def holding(self, demands: Collection[str]) -> frozenset[str]:
        """Names of the nodes, and of NodeClaims without one, that hold chunks of one of these demands, as their annotations say."""
        return frozenset(item.name for item in self.machines if not item.holders.isdisjoint(demands))

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
