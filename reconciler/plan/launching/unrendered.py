"""Nodes whose NodeClaim no template can be rendered for: the plan does not make them, and says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.refs import ObjectRef
from reconciler.plan.launching.caps import Capped, Cut

TEMPLATE_FAILED = "template failed"
COST_NOTE = "nodes whose template fails count in the 30 days as if it were mended, but not in the hourly price"
_KINDS = ("NodeClaim", "NodePool")


def without_unrendered(
    created: Sequence[NodeClaimCreation], capped: Capped, unrendered: Mapping[ObjectRef, str]
) -> tuple[tuple[NodeClaimCreation, ...], Capped]:
    """The creations that can be made, and cuts with the others added. unrendered: the reason, by object.

    A NodeClaim copies its NodePool, so it waits for that, too. Nodes for pending pods need none, since Karpenter makes them.
    """
    claims, pools = ({ref.name: why for ref, why in unrendered.items() if ref.kind == kind} for kind in _KINDS)
    kept: list[NodeClaimCreation] = []
    cuts: list[Cut] = []
    for item in created:
        why = claims.get(item.name) or pools.get(item.planned.node_pool)
        if why is None or any(holding.demand.kind == "Pod" for holding in item.planned.holdings):
            kept.append(item)
        else:
            cuts.append(Cut(item.planned, why, TEMPLATE_FAILED))
    return tuple(kept), replace(capped, cuts=(*capped.cuts, *cuts))
