"""Objects that are no longer declared and may not be deleted yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.refs import ObjectRef


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """most: how many objects may be deleted within an hour. held: of how many. next_at: when the next may be, by headroom's clock.

    next_at None: nothing may be deleted at present, and `Plan.blocked` says why. Truthy where an object waits.
    """

    refs: tuple[ObjectRef, ...] = ()
    most: int = 0
    held: int = 0
    next_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.refs)
