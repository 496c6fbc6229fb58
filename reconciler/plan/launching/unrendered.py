"""Nodes whose NodeClaim no template can be rendered for: the plan does not make them, and says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.refs import ObjectRef
from reconciler.plan.launching.caps import Capped, Cut

TEMPLATE_FAILED = "template failed"
COST_NOTE = "nodes whose template fails count over the 30 days as if it were mended; at this hour they do not"
_KINDS = ("NodeClaim", "NodePool")


def without_unrendered(
    created: Sequence[NodeClaimCreation], capped: Capped, unrendered: Mapping[ObjectRef, str]
) -> tuple[tuple[NodeClaimCreation, ...], Capped]:
    """The creations that can be carried out, and the others among the cuts. unrendered: why, by object.

    A NodeClaim copies its NodePool, so it waits for that, too. Nodes that hold pending pods are not ours to make.
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
