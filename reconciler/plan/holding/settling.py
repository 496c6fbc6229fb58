"""How long the free room of a node has been unchanged, as recorded in the cluster.

Karpenter dates the last pod that came to a node or left it on its NodeClaim (controllers/nodeclaim/podevents), and waits
`consolidateAfter` from there. Nothing is remembered here, so that a restart changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.model.nodes import NodePool
from reconciler.plan.bins import Bin

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_WAIT = timedelta(seconds=10)
"""Karpenter dates pod events that are closer together only once, so younger room may be in use again already."""


def wait_of(pool: NodePool) -> timedelta | None:
    """How long room must have been free before chunks leave a node of this NodePool for it; None: they never do."""
    if pool.consolidate_after is None or pool.replicas is not None:
        return None
    return max(pool.consolidate_after, LEAST_WAIT)


def unchanged_since(item: Bin) -> datetime:
    """When a pod last came or went, or the node last became ready; long ago if that is not recorded."""
    claim, node = item.claim, item.node
    times = [
        None if claim is None else claim.last_pod_event,
        None if node is None else node.ready_changed,
        None if node is None else node.created,
    ]
    return max((time for time in times if time is not None), default=LONG_AGO)
