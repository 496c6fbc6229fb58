"""The names under which headroom is known in a cluster, and those of its annotations that several packages go by.

Written by plan, found again by cluster, heeded by demand and render: a spelling of its own in each would come apart.
"""

from __future__ import annotations

OWN_MANAGER = "headroom"
"""The field manager of every server-side apply."""
PART_OF_LABEL = "applyset.kubernetes.io/part-of"
"""Membership in an ApplySet (KEP-3659); the value is the set's id."""
SUSPEND_ANNOTATION = "headroom.dev/suspend"
"""With the value "true": leave this object as it is."""
DRIFT_ANNOTATION = "headroom.dev/drift"
"""What becomes of an object that was changed in the cluster since it was applied: correct or report."""
MODE_ANNOTATION = "headroom.dev/ssa"
"""How an object is applied: Override, Merge, IfNotPresent or Ignore."""
REPLICAS_FROM_ANNOTATION = "headroom.dev/replicas-from"
"""On a buffer or a static NodePool: the MetricsProducer whose value is its replicas."""
ACTIVE_DURING_ANNOTATION = "headroom.dev/active-during"
"""On a buffer: the MetricsProducer while whose value is above 0 it exists."""
LEAD_TIME_ANNOTATION = "headroom.dev/lead-time"
"""Beside either: how much earlier it grows, so that nodes are ready at the edge."""


def is_own(manager: str) -> bool:
    """Whether a field manager is headroom, in any of its roles (`headroom`, `headroom-status`)."""
    return manager.partition("-")[0] == OWN_MANAGER
