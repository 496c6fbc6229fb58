"""Renders planned NodeClaims and NodePools to document text, which the caller validates as it would any manifest."""

from __future__ import annotations

from reconciler.model.changes import NodeClaimCreation, ObjectChange
from reconciler.model.nodes import NodePool
from reconciler.render.contexts import manifest_context, node_claim_context
from reconciler.render.templates import DocumentTemplates

NODE_CLAIM_TEMPLATE = "nodeclaim.yaml.j2"
NODE_POOL_TEMPLATE = "nodepool.yaml.j2"


def render_node_claim(templates: DocumentTemplates, creation: NodeClaimCreation, pool: NodePool) -> str:
    """One NodeClaim as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_CLAIM_TEMPLATE, node_claim_context(creation, pool))


def render_node_pool(templates: DocumentTemplates, change: ObjectChange) -> str:
    """One NodePool as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_POOL_TEMPLATE, manifest_context(change))
