"""Hands every held node back before headroom is removed: placeholders, and nodes that were there before."""

from __future__ import annotations

from reconciler.model.changes import Annotate
from reconciler.model.nodes import DO_NOT_DISRUPT, HELD_ANNOTATION, HELD_TAINT, SCARCE_TAINT
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.bins import is_marked


def releases(view: ClusterView) -> tuple[Annotate, ...]:
    """Removes the mark, the taints, and `do-not-disrupt` where the mark is beside it. A person's own do-not-disrupt stays."""
    gone = ((DO_NOT_DISRUPT, None), (HELD_ANNOTATION, None))
    reason = "headroom leaves this cluster"
    claims = [ObjectRef("karpenter.sh", "NodeClaim", "", claim.name) for claim in view.node_claims if is_marked(claim)]
    nodes = [ObjectRef("", "Node", "", node.name) for node in view.nodes if is_marked(node)]
    reserved = {
        ObjectRef("", "Node", "", node.name): tuple((taint, False) for taint in found)
        for node in view.nodes
        if (found := reserved_taints(node.taints))
    }
    return (
        *(Annotate(ref, gone, reason) for ref in claims),
        *(
            Annotate(ref, gone, reason, taints=((HELD_TAINT, False), (SCARCE_TAINT, False), *reserved.pop(ref, ())))
            for ref in nodes
        ),
        *(Annotate(ref, (), reason, taints=taints) for ref, taints in reserved.items()),
    )
