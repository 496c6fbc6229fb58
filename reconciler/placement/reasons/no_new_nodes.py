"""Why headroom makes no new node for a demand, and what would make one."""

from __future__ import annotations

from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import Demand
from reconciler.model.provisioning_requests import CLASSES, RequestKind

_MAKES_NODES = next(name for name, kind in CLASSES.items() if kind is RequestKind.ATOMIC)


def is_check(demand: Demand) -> bool:
    """Whether the demand only asks if there is room."""
    return demand.request is not None and demand.request.kind is RequestKind.CHECK


def why_no_new_nodes(demand: Demand) -> str:
    """The reason as a clause."""
    if demand.is_pending_pod:
        return "Karpenter makes nodes for pods, headroom does not"
    if is_check(demand):
        return f"a check-capacity request gets no new nodes: one of class {_MAKES_NODES} does"
    if demand.fulfilment != Fulfilment.PLACEHOLDER:
        return "new nodes for this buffer are left to whoever keeps it"
    return "headroom makes no new nodes for this demand now"
