"""Every kind of manifest that headroom reads."""

from __future__ import annotations

from reconciler.manifests.buffer import BUFFER
from reconciler.manifests.capacity_buffer import CAPACITY_BUFFER
from reconciler.manifests.kind import Kind
from reconciler.manifests.metrics_producer import METRICS_PRODUCER
from reconciler.manifests.node_overlay import NODE_OVERLAY
from reconciler.manifests.node_pool import NODE_POOL
from reconciler.manifests.pods.workload import POD_TEMPLATE, PRIORITY_CLASS, WORKLOADS
from reconciler.manifests.provisioning_request import PROVISIONING_CLASS, PROVISIONING_REQUEST

KINDS: tuple[Kind, ...] = (
    BUFFER,
    CAPACITY_BUFFER,
    METRICS_PRODUCER,
    NODE_OVERLAY,
    NODE_POOL,
    POD_TEMPLATE,
    PRIORITY_CLASS,
    PROVISIONING_CLASS,
    PROVISIONING_REQUEST,
    *WORKLOADS,
)
_BY_IDENTITY = {(kind.group, kind.name): kind for kind in KINDS}


def kind_of(group: str, name: str) -> Kind | None:
    """The kind of that group and name; None when headroom does not read it."""
    return _BY_IDENTITY.get((group, name))
