"""All demands of a pass, in the order in which they are placed: the package's entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.pending import pending_demands
from reconciler.demand.provisioning_requests import request_demands
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.view import ClusterView


def demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    include_pending: bool = False,
    leaving: Sequence[Demand] = (),
    instance_types: Sequence[InstanceType] = (),
    now: datetime | None = None,
    requests: RequestRules | None = None,
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """Pending pods first, then requests and buffers in the order in which they are served (`Demand.order`). And the findings on buffers.

    declared: the repository's documents merged over the cluster's own.
    include_pending: new nodes may be planned for pending pods.
    leaving: pods of nodes that are being deleted, which come after those that wait.
    instance_types: what a chunk of a node class buffer without a size of its own must fit; without them it is one core.
    now: by the cluster's clock, to which the age of a status is compared; without it provisioning requests are left out,
    which the clock moves on.
    """
    asked, edited = ((), ()) if now is None else request_demands(declared, view, now, requests or RequestRules())
    buffers, findings = buffer_demands(declared, view, dialect=dialect, instance_types=instance_types, now=now)
    pods = pending_demands(view, include_pending=include_pending)
    return (*pods, *leaving, *sorted((*asked, *buffers), key=_ORDER)), (*edited, *findings)


_ORDER = attrgetter("order")
