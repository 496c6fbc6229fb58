"""Chunks and pods that leave a node so that Karpenter can take it for less."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.sentences import abridged


@dataclass(frozen=True, slots=True)
class Departure:
    """Chunks leave a held node for cheaper room, or a node's pods may move to held nodes. since: when that began; until: how long no chunks
    come to the node. saves: USD an hour, once Karpenter has consolidated the node. claims: the NodeClaims made for the chunks. admits: the
    held nodes that are open to the pods, without the taint of held nodes."""

    node: str
    since: datetime
    until: datetime
    saves: float
    claims: tuple[str, ...] = ()
    admits: tuple[str, ...] = ()

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
