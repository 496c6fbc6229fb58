"""All demands of a pass, in the order in which they are placed: the package's entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.leaving import leaving_demands
from reconciler.demand.pending import pending_demands
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.view import ClusterView


def demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    include_pending: bool = False,
    now: datetime | None = None,
    instance_types: Sequence[InstanceType] = (),
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """Pending pods first, then buffers by priority, namespace, name and kind: a total order. And the findings on buffers.

    declared: the repository's documents merged over the cluster's own.
    include_pending: new nodes may be planned for pending pods.
    now: with include_pending, adds the pods of nodes that are being deleted, if they may be evicted at that instant.
    instance_types: what a chunk of a node class buffer without a size of its own must fit; without them it is one core.
    """
    buffers, findings = buffer_demands(declared, view, dialect=dialect, instance_types=instance_types)
    pods = pending_demands(view, include_pending=include_pending)
    leaving = leaving_demands(view, now) if include_pending and now is not None else ()
    return (*pods, *leaving, *sorted(buffers, key=_order)), findings


def _order(demand: Demand) -> tuple[int, str, str, str]:
    return (-demand.priority, demand.ref.namespace, demand.ref.name, demand.ref.kind)
