"""What kube-scheduler counts for a pod while it is resized in place.

Since Kubernetes 1.33 kube-scheduler takes, for each resource, the greatest of a container's request, its actual resources
and those that the kubelet allocated. Of a resize that the node can never grant (`PodResizePending`, `Infeasible`) the request
does not count. This holds for app containers and sidecars, and since 1.36 for the pod's own resources
(k8s.io/component-helpers, resource/helpers.go; KEP-1287, KEP-5419).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reconciler.cluster.decoding.wire import ContainerStatusWire, PodStatusWire, PodWire
from reconciler.manifests.pod_shape import ALWAYS
from reconciler.manifests.pod_spec_wire import ContainerWire, PodSpecWire, Quantities, ResourcesWire
from reconciler.model.quantity import amount_of

RESIZE_PENDING = "PodResizePending"
_INFEASIBLE = "Infeasible"


def as_counted(pod: PodWire) -> PodWire:
    """The pod with a spec that asks for what counts; the very same pod where its containers have what they ask for.

    Raises `Invalid`.
    """
    spec, status = pod.spec, pod.status
    statuses = {item.name: item for item in status.container_statuses or ()}
    if status.init_container_statuses:
        statuses.update((item.name, item) for item in status.init_container_statuses)
    if status.resources is None and not _any_is_resized(spec, statuses):
        return pod
    asked_counts = not _is_infeasible(status)
    counted = msgspec.structs.replace(
        spec,
        containers=_containers(spec.containers, statuses, asked_counts=asked_counts),
        init_containers=_containers(
            spec.init_containers,
            {
                item.name: statuses[item.name]
                for item in spec.init_containers or ()
                if item.restart_policy == ALWAYS and item.name in statuses
            },
            asked_counts=asked_counts,
        ),
        resources=_own(spec, status, asked_counts=asked_counts),
    )
    return msgspec.structs.replace(pod, spec=counted)


def _any_is_resized(spec: PodSpecWire, statuses: Mapping[str, ContainerStatusWire]) -> bool:
    for containers in (spec.containers, spec.init_containers):  # loops, since they run for every pod of the cluster
        for container in containers or ():
            if _is_resized(container, statuses):
                return True
    return False


def _is_resized(container: ContainerWire, statuses: Mapping[str, ContainerStatusWire]) -> bool:
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return False
    asked = container.resources.requests if container.resources is not None else None
    return not _same(asked, status.resources.requests, status.allocated_resources)


def _is_infeasible(status: PodStatusWire) -> bool:
    pending = next((item for item in status.conditions or () if item.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == _INFEASIBLE


def _containers(
    containers: tuple[ContainerWire, ...] | None, statuses: Mapping[str, ContainerStatusWire], *, asked_counts: bool
) -> tuple[ContainerWire, ...] | None:
    if not containers or not statuses:
        return containers
    return tuple(
        _container(item, statuses[item.name], asked_counts=asked_counts) if _is_resized(item, statuses) else item
        for item in containers
    )


def _container(container: ContainerWire, status: ContainerStatusWire, *, asked_counts: bool) -> ContainerWire:
    asked = container.resources or ResourcesWire()
    has = status.resources.requests if status.resources is not None else None
    given = {name: value for name, value in (asked.requests or {}).items() if value is not None}
    # As the API server writes it: a limit is the request where there is none.
    wanted: Quantities | None = {**(asked.limits or {}), **given} if asked_counts else None
    counted = ResourcesWire(requests=_greatest(wanted, has, status.allocated_resources))
    return msgspec.structs.replace(container, resources=counted)


def _own(spec: PodSpecWire, status: PodStatusWire, *, asked_counts: bool) -> ResourcesWire | None:
    """The pod-level resources, limited to those that the pod requests itself."""
    own = spec.resources
    if own is None or not own.requests or status.resources is None:
        return own
    has = status.resources.requests
    if _same(own.requests, has, status.allocated_resources):
        return own
    most = _greatest(own.requests if asked_counts else None, has, status.allocated_resources)
    return msgspec.structs.replace(own, requests={name: most.get(name, 0) for name in own.requests})


def _same(asked: Quantities | None, has: Quantities | None, allocated: Quantities | None) -> bool:
    """Whether all are equal, as almost always. Compared as text, since kubelet and API server write quantities the same way."""
    return (asked or {}) == (has or {}) and (allocated is None or allocated == (asked or {}))


def _greatest(*lists: Quantities | None) -> Quantities:
    most: Quantities = {}
    for quantities in lists:
        for name, value in (quantities or {}).items():
            if value is not None and (name not in most or amount_of(name, value) > amount_of(name, most[name])):
                most[name] = value
    return most
