"""Changes that take held room. Buffers are then refilled without waiting for the cluster to be quiet."""

from __future__ import annotations

from reconciler.model.nodes import DISRUPTED_TAINT, HELD_ANNOTATION, Node, NodeClaim
from reconciler.model.pods import Pod


def is_held(side: object) -> bool:
    """Whether it is a node or NodeClaim that holds chunks."""
    return isinstance(side, Node | NodeClaim) and side.annotation(HELD_ANNOTATION) == "true"


def begins_to_go(before: object, after: object) -> bool:
    """Whether a node or NodeClaim that holds chunks begins to be deleted or disrupted with this change."""
    return is_held(before) and _is_going(after) and not _is_going(before)


def node_newly_used(before: object, after: object) -> str:
    """The node that the change binds a pod to, "" for none. Daemon pods do not count, since they come with their node."""
    if not isinstance(after, Pod) or after.node_name is None or after.is_daemon or after.deleting:
        return ""
    return "" if isinstance(before, Pod) and before.node_name is not None else after.node_name


def _is_going(side: object) -> bool:
    if isinstance(side, Node):
        return side.deleting or any(taint.key == DISRUPTED_TAINT for taint in side.taints)
    return isinstance(side, NodeClaim) and side.deleting
