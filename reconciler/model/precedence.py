"""Who goes first when room, a cap or a limit is short."""

from __future__ import annotations

import re
from typing import NamedTuple

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
NO_PRIORITY_CLASS = -(2**31) - 1
"""The pod priority of chunks whose shape names no PriorityClass: below every pod's, since they yield to every pod."""


class Rank(NamedTuple):
    """Demands of equal rank are served by age and name, but none of them moves another that has its place already.

    The least comes first: pending pods, bookings, the higher pod priority, the higher `headroom.dev/priority`, and requests
    before buffers. No two requests are of equal rank: the older one has what only one of them can have.
    """

    after_pods: bool
    after_bookings: bool
    pod_priority: int
    """Negated, as is the next."""
    declared_priority: int
    after_requests: bool
    turn: tuple[str, ...] = ()
    """Of a request that nothing is booked for: its age and name."""


BOOKING = Rank(after_pods=True, after_bookings=False, pod_priority=0, declared_priority=0, after_requests=False)
"""Of whatever has its capacity already, whose turn it was before: bookings keep their places, and none takes another's."""


def rank_of_pods(priority: int) -> Rank:
    """Of pending pods of that priority."""
    return Rank(after_pods=False, after_bookings=True, pod_priority=-priority, declared_priority=0, after_requests=True)


def is_priority(text: str) -> bool:
    """Whether it can be the value of `headroom.dev/priority`: an integer of at most nine digits."""
    return _INTEGER.fullmatch(text) is not None
