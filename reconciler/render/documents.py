"""Renders planned NodeClaims, NodePools and balloon pods as text, which the caller validates like any manifest."""

from __future__ import annotations

from reconciler.model.changes import NodeClaimCreation, ObjectChange
from reconciler.model.nodes import NodePool
from reconciler.render.contexts import balloon_context, manifest_context, node_claim_context
from reconciler.render.templates import DocumentTemplates

NODE_CLAIM_TEMPLATE = "nodeclaim.yaml.j2"
NODE_POOL_TEMPLATE = "nodepool.yaml.j2"
BALLOON_TEMPLATE = "balloon.yaml.j2"


def render_node_claim(templates: DocumentTemplates, creation: NodeClaimCreation, pool: NodePool) -> str:
    """One NodeClaim as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_CLAIM_TEMPLATE, node_claim_context(creation, pool))


def render_node_pool(templates: DocumentTemplates, change: ObjectChange) -> str:
    """One NodePool as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_POOL_TEMPLATE, manifest_context(change))


def render_balloon(templates: DocumentTemplates, change: ObjectChange) -> str:
    """One Deployment of balloon pods as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(BALLOON_TEMPLATE, balloon_context(change))
