"""Which Deployment a first buffer is for, and how large the buffer is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.model.buffers import Buffer
from reconciler.model.pods import Workload
from reconciler.model.quantity import CPU, MEMORY

SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", "headroom-system"})
_SHARE, _LEAST = 5, 3


def candidate(workloads: Iterable[Workload], buffers: Collection[Buffer]) -> Workload | None:
    """The largest Deployment of the cluster's users that has no buffer yet; of equal ones the first by name.

    Pods that request neither CPU nor memory are passed over, since a buffer for them would reserve nothing.
    """
    targets = {buffer.target for buffer in buffers}
    names = {(buffer.ref.namespace, buffer.ref.name) for buffer in buffers}  # a new buffer is called as its Deployment
    candidates = [
        workload
        for workload in workloads
        if (workload.ref.group, workload.ref.kind) == ("apps", "Deployment")
        and workload.ref.namespace not in SYSTEM_NAMESPACES
        and workload.replicas
        and _requests_room(workload)
        and workload.ref not in targets
        and (workload.ref.namespace, workload.ref.name) not in names
    ]
    return min(candidates, key=lambda workload: (-(workload.replicas or 0), workload.ref), default=None)


def chunks_for(replicas: int) -> int:
    """A fifth of the Deployment, rounded up, and at least three: a buffer that a first plan can show."""
    return max(_LEAST, -(-replicas // _SHARE))


def _requests_room(workload: Workload) -> bool:
    shape = workload.shape
    return shape is not None and (shape.requests.get(CPU) > 0 or shape.requests.get(MEMORY) > 0)
