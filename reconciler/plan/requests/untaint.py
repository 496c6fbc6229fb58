"""Reserved nodes whose request is over lose the taint that kept other pods off.

The view alone decides: the node is reserved for a request that has ended or no longer exists. So after a kill at any point the next pass
finishes the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.changes import NodeClaimAction
from reconciler.model.demand import Demand
from reconciler.model.provisioning_requests import reserved_taint, reserved_taints
from reconciler.model.refs import ObjectRef
from reconciler.plan.bins import Bin
from reconciler.requests.life import Decision


def untainted(
    bins: Sequence[Bin], demands: Iterable[Demand], decisions: Mapping[ObjectRef, Decision]
) -> tuple[NodeClaimAction, ...]:
    """Nodes that any pod may use from now on. A NodeClaim cannot be changed: its node is freed in a later pass, once it exists."""
    reserved = [item for item in bins if not item.is_going and _values(item)]
    if not reserved:
        return ()
    live = {
        reserved_taint(demand.ref).value
        for demand in demands
        if demand.request is not None and (_has_not_ended(decisions.get(demand.ref)))
    }
    return tuple(
        NodeClaimAction(
            item.claim.name if item.claim is not None else None,
            item.name,
            item.node_pool,
            f"the provisioning request that it was reserved for ({value}) is over",
        )
        for item in reserved
        for value in _values(item)[:1]
        if not live.intersection(_values(item))
    )


def _values(item: Bin) -> list[str]:
    return [] if item.node is None else [taint.value for taint in reserved_taints(item.node.taints)]


def _has_not_ended(decision: Decision | None) -> bool:
    return decision is None or decision.record.ended is None
