"""Objects that are no longer declared and may not be deleted yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.refs import ObjectRef


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """most, most_nodes: how many objects may be deleted, and nodes released for them, within an hour. held, nodes_held: of how many.
    next_at: when the next may be, by headroom's clock.

    next_at None: nothing may be deleted at present, and `Plan.blocked` says why. Truthy where an object waits.
    """

    refs: tuple[ObjectRef, ...] = ()
    most: int = 0
    held: int = 0
    most_nodes: int = 0
    nodes_held: int = 0
    next_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.refs)

    @property
    def cap(self) -> str:
        """`at most 5 of 11 objects and 2 of 7 held nodes go within an hour`."""
        nodes = (
            f" and {min(self.most_nodes, self.nodes_held):,} of {self.nodes_held:,} held nodes"
            if self.nodes_held
            else ""
        )
        return f"at most {min(self.most, self.held):,} of {self.held:,} objects{nodes} go within an hour"
