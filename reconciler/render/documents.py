"""Renders planned NodeClaims and NodePools to document text. Called by the cycle's render stage, which validates the text."""

from __future__ import annotations

from reconciler.model.changes import NodeClaimCreation, ObjectChange
from reconciler.model.nodes import NodePool
from reconciler.render.contexts import manifest_context, node_claim_context
from reconciler.render.environment import Templates

NODE_CLAIM_TEMPLATE = "nodeclaim.yaml.j2"
NODE_POOL_TEMPLATE = "nodepool.yaml.j2"


def render_node_claim(templates: Templates, creation: NodeClaimCreation, pool: NodePool) -> str:
    """One NodeClaim as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_CLAIM_TEMPLATE, node_claim_context(creation, pool))


def render_node_pool(templates: Templates, change: ObjectChange) -> str:
    """One NodePool as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_POOL_TEMPLATE, manifest_context(change))
