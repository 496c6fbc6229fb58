"""Everything that is declared, typed: from a repository or from the cluster's own objects. Made by manifests, read by demand and plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    broken: objects whose document is invalid. Both keep their last good version in force and are never pruned.
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

    def over(self, live: Declared) -> Declared:
        """This (the repository) first, then what only `live` (the cluster) has. Manifests and findings stay this one's."""
        pools = {pool.name for pool in self.node_pools}
        priorities = {priority.name for priority in self.priority_classes}
        return Declared(
            buffers=_first(self.buffers, live.buffers),
            node_pools=_sorted_by_name(
                (*self.node_pools, *(pool for pool in live.node_pools if pool.name not in pools)),
            ),
            workloads=_first(self.workloads, live.workloads),
            priority_classes=(
                *self.priority_classes,
                *(priority for priority in live.priority_classes if priority.name not in priorities),
            ),
            provisioning_requests=_first(self.provisioning_requests, live.provisioning_requests),
            provisioning_classes=_first(self.provisioning_classes, live.provisioning_classes),
            schedules=_first(self.schedules, live.schedules),
            node_overlays=_first(self.node_overlays, live.node_overlays),
            manifests=self.manifests,
            findings=self.findings,
            broken_files=self.broken_files,
            broken=self.broken,
        )


def _first(own: tuple[T, ...], others: tuple[T, ...]) -> tuple[T, ...]:
    taken = {item.ref for item in own}
    return tuple(sorted((*own, *(item for item in others if item.ref not in taken)), key=_order))


def _order(item: _Referenced) -> tuple[str, str, str, str]:
    return (item.ref.namespace, item.ref.name, item.ref.kind, item.ref.group)


def _sorted_by_name(pools: Iterable[NodePool]) -> tuple[NodePool, ...]:
    return tuple(sorted(pools, key=lambda pool: pool.name))
