"""Status conditions as Kubernetes has them, and the counts of chunks that buffers' and requests' conditions go by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

REMOVAL = "Removal"
"""Type of the condition of what waits to be deleted. A pass that finds it waiting says so anew."""


class ConditionStatus(StrEnum):
    """The three values of `status` in a Kubernetes condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition without its times. The writer sets `lastTransitionTime`, since the core has no clock."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def ending(kind: str, reason: str, message: str) -> Condition:
    """The condition that ends a one-shot buffer or a request."""
    return Condition(kind, ConditionStatus.TRUE, reason, message)


@dataclass(frozen=True, slots=True)
class Availability:
    """Counts of one demand's chunks by state, and in words why some are missing.

    ready: on nodes that take pods now. coming: on nodes on their way. unlaunched: in words, the first of these, or of the new ones, that could not be had so far. not_ready: on nodes that were ready and are waited for. new: on nodes
    that the plan makes, or while headroom is suspended would make. cut: the cap that keeps some waiting. stopped: the NodePool at its limit, or what is out of stock and until when. why: what stood in the way
    of unplaced chunks. unread: what of the cluster cannot be read, so that missing chunks may be there after all. tried: of a request,
    whether its current attempt has asked for nodes or set some aside. fitting: of a request that is not placed, how many of its
    chunks would have a place at least. waiting: of a request, its own pods that have no place yet: the
    nodes for them are Karpenter's to make.
    """

    ready: int = 0
    coming: int = 0
    not_ready: int = 0
    new: int = 0
    unplaced: int = 0
    unlaunched: str = ""
    cut: str = ""
    stopped: str = ""
    why: str = ""
    unread: str = ""
    tried: bool = True
    waiting: int = 0
    fitting: int = 0
    suspended: bool = False
