"""What goes: chunks and pods that leave a node, and objects that wait for their deletion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.refs import ObjectRef, abridged


@dataclass(frozen=True, slots=True)
class Departure:
    """Chunks leave a held node for cheaper room, or a node's pods may move to held nodes. since: when that began; until: how long no chunks
    come to the node. saves: USD an hour, once Karpenter has consolidated the node. claims: the NodeClaims made for the chunks. admits: the
    held nodes that are open to the pods, without the taint of held nodes. rooms: those of the claims that are for the pods; empty and
    protected until Karpenter has moved them there."""

    node: str
    since: datetime
    until: datetime
    saves: float
    claims: tuple[str, ...] = ()
    admits: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    def is_under_way(self, now: datetime) -> bool:
        """Whether chunks stay away from the node. Afterwards Karpenter is not expected to take the node any more."""
        return now < self.until

    @property
    def words(self) -> str:
        """What happens, and what it saves: `chunks leave NODE for cheaper room, which saves …`."""
        does = f"chunks leave {self.node} for cheaper room"
        if self.admits:
            does = f"pods of {self.node} may move to {abridged(self.admits, 3)}, which {'have' if len(self.admits) > 1 else 'has'} room beside the chunks"
        return f"{does}, which saves ${self.saves:,.2f}/h once Karpenter has consolidated the node"


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
