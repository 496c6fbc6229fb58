"""Who goes first when room, a cap or a limit is short."""

from __future__ import annotations

import re
from typing import NamedTuple

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
NO_PRIORITY_CLASS = -(2**31) - 1
"""The pod priority of chunks whose shape names no PriorityClass: below every pod's, since they yield to every pod."""


class Rank(NamedTuple):
    """Demands of equal rank are served by age and name, but none of them displaces another that has its place already.

    The least rank is served first: pending pods, bookings, higher pod priority, higher `headroom.dev/priority`, and requests
    before buffers. No two requests have equal rank: of two, the older gets what is enough for only one.
    """

    after_pods: bool
    after_bookings: bool
    pod_priority: int
    after_kept: bool
    """False for a buffer whose room is kept from requests, while a request of that pod priority asks for room."""
    declared_priority: int
    """Negated, like the pod priority, so that higher ones sort first."""
    after_requests: bool
    turn: tuple[str, ...] = ()
    """Of a request without a booking: its age and name."""


BOOKING = Rank(
    after_pods=True, after_bookings=False, pod_priority=0, after_kept=True, declared_priority=0, after_requests=False
)
"""The rank of bookings, which were served in an earlier pass. They keep their places, and none takes another's."""


def rank_of_pods(priority: int) -> Rank:
    """The rank of pending pods of that priority."""
    return Rank(
        after_pods=False,
        after_bookings=True,
        pod_priority=-priority,
        after_kept=True,
        declared_priority=0,
        after_requests=True,
    )


def is_priority(text: str) -> bool:
    """Whether it is a valid `headroom.dev/priority`: an integer of at most nine digits."""
    return _INTEGER.fullmatch(text) is not None
