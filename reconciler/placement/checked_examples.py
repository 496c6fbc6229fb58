"""Nodes that are up, as examples of those to come, for the checker. Used by volume_checker and device_checker; shares nothing with
the engine."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, Node
from reconciler.model.view import ClusterView
from reconciler.placement.checked_sites import OPEN, Site


def is_up(view: ClusterView, node: Node) -> bool:
    """Of a node that Karpenter made: whether it has all it is going to have."""
    claims = [claim for claim in view.node_claims if claim.node_name == node.name]
    if not claims and node.label(NODEPOOL_LABEL) is None:
        return True
    said = any(claim.condition("Initialized") == "True" for claim in claims)
    return said or node.label(INITIALIZED_LABEL) == "true"


def possible_types(site: Site) -> Sequence[str]:
    value = site.labels.get(INSTANCE_TYPE_LABEL)
    return site.possible(INSTANCE_TYPE_LABEL) if value == OPEN else [value or ""]


def names_up(view: ClusterView, *, pool: str | None = None, instance_type: str | None = None) -> list[str]:
    """Nodes that are up, of that NodePool and that type (None: any)."""
    return [
        node.name
        for node in view.nodes
        if pool in {None, node.label(NODEPOOL_LABEL) or ""}
        and instance_type in {None, node.label(INSTANCE_TYPE_LABEL) or ""}
        and is_up(view, node)
    ]
