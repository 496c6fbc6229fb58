"""Everything that is declared, typed: from a repository or from the cluster's own objects. Made by manifests, read by demand and plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from reconciler.model.buffers import Buffer
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.model.provisioning_requests import ProvisioningClass, ProvisioningRequest
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import Schedule
from reconciler.model.view import Manifest
from reconciler.model.workloads import PriorityClass, Workload


@dataclass(frozen=True, slots=True)
class DeclaredManifest:
    """One document that the cluster must carry, as written (spellings already corrected, in the version it was written in).

    partial: a NodePool without a template: only the fields present are applied to a pool that must exist.
    """

    ref: ObjectRef
    manifest: Manifest
    position: SourcePosition
    partial: bool = False


class _Referenced(Protocol):
    @property
    def ref(self) -> ObjectRef: ...


T = TypeVar("T", bound=_Referenced)


@dataclass(frozen=True, slots=True)
class Declared:
    """Typed documents, each kind sorted by namespace and name; node_pools are whole ones and those that a partial document
    was laid over; workloads include PodTemplates.

    manifests: what is to be applied (buffers, requests, pod templates, node pools, schedules, overlays; workloads and
    priority classes are context only, somebody else deploys them). broken_files: could not be read at all, or in part;
    broken: objects whose document is invalid. Both keep their last good version in force and are never pruned. documents: how many
    the files hold, of any kind. dormant: declared objects that are not to be in the cluster at present, and why.
    """

    buffers: tuple[Buffer, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    workloads: tuple[Workload, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    provisioning_classes: tuple[ProvisioningClass, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    manifests: tuple[DeclaredManifest, ...] = ()
    findings: tuple[Finding, ...] = ()
    broken_files: frozenset[str] = frozenset()
    broken: frozenset[ObjectRef] = frozenset()
    documents: int = 0
    dormant: Mapping[ObjectRef, str] = field(default_factory=dict)

    def over(self, live: Declared) -> Declared:
        """This (the repository) first, then what only `live` (the cluster) has. Manifests and findings stay this one's.

        Where both have an object, what is declared comes from the repository and what is observed (uid, status, a size
        that another manager owns) from the cluster.
        """
        return Declared(
            buffers=_first(self.buffers, live.buffers, _observed_buffer),
            node_pools=_pools(self.node_pools, live.node_pools),
            workloads=_first(self.workloads, live.workloads, _observed_workload),
            priority_classes=_priority_classes(self.priority_classes, live.priority_classes),
            provisioning_requests=_first(self.provisioning_requests, live.provisioning_requests, _observed_request),
            provisioning_classes=_first(self.provisioning_classes, live.provisioning_classes),
            schedules=_first(self.schedules, live.schedules),
            node_overlays=_first(self.node_overlays, live.node_overlays),
            manifests=self.manifests,
            findings=self.findings,
            broken_files=self.broken_files,
            broken=self.broken,
            documents=self.documents,
            dormant=self.dormant,
        )


def _observed_buffer(own: Buffer, live: Buffer) -> Buffer:
    return replace(
        own,
        generation=live.generation,
        created=live.created,
        status_manager=live.status_manager,
        status_conditions=live.status_conditions,
    )


def _observed_workload(own: Workload, live: Workload) -> Workload:
    """The live size counts: headroom deploys no workloads, so that whoever does owns `spec.replicas` (semantics, buffers)."""
    return replace(
        own,
        replicas=live.replicas,
        observed_replicas=live.observed_replicas,
        replicas_manager=live.replicas_manager,
        generation=live.generation,
    )


def _observed_request(own: ProvisioningRequest, live: ProvisioningRequest) -> ProvisioningRequest:
    return replace(own, created=live.created, generation=live.generation, status_conditions=live.status_conditions)


def _observed_pool(own: NodePool, live: NodePool) -> NodePool:
    return replace(
        own,
        uid=live.uid,
        ready=live.ready,
        deleting=live.deleting,
        hash=live.hash,
        hash_version=live.hash_version,
        usage=live.usage,
    )


def _first(
    own: tuple[T, ...],
    others: tuple[T, ...],
    observed: Callable[[T, T], T] = lambda item, _live: item,
) -> tuple[T, ...]:
    live = {item.ref: item for item in others}
    merged = [observed(item, live.pop(item.ref)) if item.ref in live else item for item in own]
    return tuple(sorted((*merged, *live.values()), key=_order))


def _order(item: _Referenced) -> tuple[str, str, str, str]:
    return (item.ref.namespace, item.ref.name, item.ref.kind, item.ref.group)


def _pools(own: tuple[NodePool, ...], others: tuple[NodePool, ...]) -> tuple[NodePool, ...]:
    live = {pool.name: pool for pool in others}
    merged = [_observed_pool(pool, live.pop(pool.name)) if pool.name in live else pool for pool in own]
    return tuple(sorted((*merged, *live.values()), key=lambda pool: pool.name))


def _priority_classes(
    own: tuple[PriorityClass, ...],
    others: tuple[PriorityClass, ...],
) -> tuple[PriorityClass, ...]:
    names = {priority.name for priority in own}
    rest = (priority for priority in others if priority.name not in names)
    return tuple(sorted((*own, *rest), key=lambda priority: priority.name))
