"""What goes: chunks and pods that leave a node, objects that wait for their deletion, and the hour within which removals take only a share.

The inventory remembers that hour: passes and restarts do not renew it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.refs import ObjectRef, abridged
from reconciler.model.remembered import Moment, Record, Unreadable, memory_of, restored


class Departure(Record, frozen=True):
    """Chunks leave a held node for cheaper room, or a node's pods may move to held nodes. since: when that began; until: how long no chunks
    come to the node. saves: USD an hour, once Karpenter has consolidated the node. claims: the NodeClaims made for the chunks. admits: the
    held nodes that are open to the pods, without the taint of held nodes. rooms: those of the claims that are for the pods; empty and
    protected until Karpenter has moved them there."""

    node: str
    since: Moment
    until: Moment
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
    gone, nodes_gone: how many are or go now. next_at: when the next may be, by headroom's clock.

    next_at None: nothing may be deleted at present, and `Plan.blocked` says why. Truthy where an object waits.
    """

    refs: tuple[ObjectRef, ...] = ()
    most: int = 0
    held: int = 0
    most_nodes: int = 0
    nodes_held: int = 0
    gone: int = 0
    nodes_gone: int = 0
    next_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.refs)

    @property
    def cap(self) -> str:
        """`at most 5 of 11 objects (1 so far) and 2 of 7 held nodes (2 so far) go within an hour`."""
        shares = [(self.most, self.held, "objects", self.gone)]
        shares += [(self.most_nodes, self.nodes_held, "held nodes", self.nodes_gone)] if self.nodes_held else []
        words = [
            f"{min(most, held):,} of {held:,} {what}" + (f" ({gone:,} so far)" if gone else "")
            for most, held, what, gone in shares
        ]
        return f"at most {' and '.join(words)} go within an hour"


PRUNES_KEY = "prunes"
HOUR = timedelta(hours=1)


class PruneHour(Record, frozen=True):
    """What removals took within the current hour.

    since: when the first removal began the hour. held, nodes_held: objects of the inventory and nodes with chunks then. pruned, released:
    names of what went since. stepped: nodes that buffers were let down by. let_down: by buffer, the chunks that are left of it while it waits.
    """

    since: Moment
    held: int
    nodes_held: int
    pruned: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    stepped: int = 0
    let_down: Mapping[str, int] = {}

    @property
    def ends(self) -> datetime:
        """When the next hour may begin."""
        return self.since + HOUR

    def memory(self) -> dict[str, Any]:
        """JSON values for the inventory; nothing while nothing was removed."""
        took = self.pruned or self.released or self.let_down
        return memory_of(PRUNES_KEY, self) if took else {}


def prune_hour(memory: Mapping[str, Any], members: int, nodes: int, now: datetime) -> PruneHour:
    """The current hour, or a new one. An entry of another format was written by another version, and is dropped."""
    try:
        hour = restored(memory.get(PRUNES_KEY), PruneHour)
    except Unreadable:
        return PruneHour(now, members, nodes)
    return hour if now < hour.ends else PruneHour(now, members, nodes, let_down=hour.let_down)
