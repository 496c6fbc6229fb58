"""The names that headroom uses in a cluster: its field manager, and those of its annotations that several packages read.

They are written in one package and read in another, so each is spelled once, here. What stands on nodes and NodeClaims is in `nodes.py`.
"""

from __future__ import annotations

OWN_MANAGER = "headroom"
"""The field manager of every server-side apply."""
ANNOTATION_PREFIX = "headroom.dev/"
"""The prefix of all of its annotations."""
PART_OF_LABEL = "applyset.kubernetes.io/part-of"
"""Membership in an ApplySet (KEP-3659); the value is the set's id."""
PRIORITY_ANNOTATION = "headroom.dev/priority"
"""Which of two demands of equal pod priority is served first: an integer, the higher first."""
SERVES_REQUESTS_ANNOTATION = "headroom.dev/serves-requests"
"""On a buffer, with the value "false": its room is for pods only, and no provisioning request takes it."""
RESERVE_ANNOTATION = "headroom.dev/reserve"
"""On an atomic provisioning request, with the value "true": all of its room is on nodes of its own, closed to other pods."""
SUSPEND_ANNOTATION = "headroom.dev/suspend"
"""With the value "true": leave this object as it is. On the inventory: plan, but write nothing at all."""
PATH_ANNOTATION = "headroom.dev/path"
"""On the inventory: the folder in the repository whose objects it lists."""
INVENTORY_ANNOTATION = "headroom.dev/inventory"
"""On every applied object: the inventory that lists it, as NAMESPACE/NAME."""
ADOPT_ANNOTATION = "headroom.dev/adopt"
"""On an object in Git: the inventory, as NAMESPACE/NAME, that the object is taken over from, or the identity of an ApplySet without one."""
APPLYSET_PREFIX = "applyset-"
"""Of every identity of an ApplySet (KEP-3659)."""
CLAIM_ANNOTATION = "headroom.dev/also-declared-by"
"""On an object of another inventory: the inventory, as NAMESPACE/NAME, whose repository declares the object too."""
REQUESTED_AT_ANNOTATION = "headroom.dev/requestedAt"
"""On the inventory: a new value asks for a pass at once."""
DRIFT_ANNOTATION = "headroom.dev/drift"
"""What happens to an object that was changed in the cluster since it was applied: correct or report."""
MODE_ANNOTATION = "headroom.dev/ssa"
"""How an object is applied: Override, Merge, IfNotPresent or Ignore."""
REPLICAS_FROM_ANNOTATION = "headroom.dev/replicas-from"
"""On a buffer or a static NodePool: the MetricsProducer whose value is its replicas."""
ACTIVE_DURING_ANNOTATION = "headroom.dev/active-during"
"""On a buffer: the MetricsProducer that it exists for, while its value is above 0."""
LEAD_TIME_ANNOTATION = "headroom.dev/lead-time"
"""With either of the two: how much earlier the object grows, so that nodes are ready when the value rises."""
PERCENT_OF_ANNOTATION = "headroom.dev/percent-of"
"""On a CapacityBuffer with a podTemplateRef: the running pods whose requests its `spec.percentage` is a share of."""
ONE_SHOT_ANNOTATION = "headroom.dev/one-shot"
"""On a buffer, with the value "true": what `refillStrategy: none` says where the cluster's definition has that field."""
FILL_DEADLINE_ANNOTATION = "headroom.dev/fill-deadline"
"""On a one-shot buffer: `fillDeadlineSeconds` as a duration, likewise."""


def is_own(manager: str) -> bool:
    """Whether a field manager is headroom, in any of its roles (`headroom`, `headroom-status`)."""
    return manager.partition("-")[0] == OWN_MANAGER
