"""NodeClaims of failed attempts: nodes made for a ProvisioningRequest are deleted if not all of its nodes can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.model.changes import NodeClaimAction
from reconciler.model.demand import Demand
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.plan.bins import Bin, is_kept, is_marked
from reconciler.requests.life import Decision


def rolled_back(
    bins: Iterable[Bin],
    demands: Iterable[Demand],
    decisions: Mapping[ObjectRef, Decision],
    price_of: Callable[[Bin], float | None],
) -> tuple[NodeClaimAction, ...]:
    """Empty nodes of failed attempts, whatever their NodePool's policy: nobody asked for a part of a request.

    Nodes that hold pods or other chunks by now stay. Nodes of a request that is gone are released like others.
    """
    by_uid = {
        decision.record.uid: (demand.ref, decision)
        for demand in demands
        if (decision := decisions.get(demand.ref)) is not None and decision.record.uid
    }
    if not by_uid:
        return ()
    actions = []
    for item in bins:
        if item.claim is None or item.is_going or item.chunks or item.pods or item.in_use or not item.is_placeholder:
            continue
        uid, _, number = (item.claim.label(ATTEMPT_LABEL) or "").rpartition(".")
        if uid not in by_uid or any(is_kept(side) and not is_marked(side) for side in item.sides):
            continue
        ref, decision = by_uid[uid]
        if _has_failed(decision, number):
            actions.append(
                NodeClaimAction(
                    node_claim=item.claim.name,
                    node=None if item.node is None else item.node.name,
                    node_pool=item.node_pool,
                    reason=f"attempt {number} of {ref} has failed, so its nodes are deleted",
                    price=price_of(item),
                )
            )
    return tuple(actions)


def _has_failed(decision: Decision, number: str) -> bool:
    record = decision.record
    if record.ended is not None:
        return decision.has_failed
    return number != str(record.attempt) or not (record.under_way or record.provisioned is not None)
