"""One-shot buffers: what the inventory remembers of them, by the uid of their object.

A buffer that is deleted and created again has a new uid, and is filled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.conditions import Condition, ConditionStatus

ONE_SHOTS_KEY = "oneShots"
FULFILLED, EXPIRED = "Fulfilled", "Expired"
"""The two conditions that end a one-shot buffer for good. Names and reasons are those of the proposal for both autoscalers (autoscaler#10108)."""
BUFFER_FILLED, DEADLINE_EXCEEDED, CAPACITY_LOST = "BufferFilled", "FillDeadlineExceeded", "CapacityLost"
"""Their reasons: pods used it; they did not in time; its nodes went before any pod came (the last is headroom's own)."""


@dataclass(frozen=True, slots=True)
class OneShotPlace:
    """chunks: how many of the buffer's are left on this node. room: how many would fit beside the running pods."""

    node: str
    chunks: int
    room: int


@dataclass(frozen=True, slots=True)
class OneShot:
    """since: when it became ready, for its deadline; "" where it has none. filled: when all its chunks had room, "" until then. Both RFC 3339.

    left: how many chunks have room that nobody has used. used: how many pods have used. lost: how many went with their nodes.
    nodes: the names of the nodes with chunks that are left. places: the same chunks node by node; earlier versions did not write them.
    ended: the condition that ended it.
    """

    left: int = 0
    nodes: tuple[str, ...] = ()
    filled: str = ""
    places: tuple[OneShotPlace, ...] = ()
    used: int = 0
    lost: int = 0
    since: str = ""
    ended: Condition | None = None

    def on(self, places: Iterable[OneShotPlace]) -> OneShot:
        """The record with these places left."""
        kept = tuple(sorted((place for place in places if place.chunks), key=lambda place: place.node))
        left = sum(place.chunks for place in kept)
        return replace(self, left=left, nodes=tuple(place.node for place in kept), places=kept)

    def gives_up(self, deadline: timedelta) -> datetime | None:
        """When its deadline has passed; None before it has become ready. A deadline that came later counts from when it was full."""
        since = self.since or self.filled
        return datetime.fromisoformat(since) + deadline if since else None

    def as_json(self) -> dict[str, Any]:
        """The record as the inventory stores it."""
        places = {place.node: {"chunks": place.chunks, "room": place.room} for place in self.places}
        rare = {"used": self.used, "lost": self.lost, "since": self.since}
        ended = self.ended
        return {
            "left": self.left,
            "nodes": list(self.nodes),
            "filled": self.filled,
            "places": places,
            **{name: value for name, value in rare.items() if value},
            **({} if ended is None else {"ended": [ended.type, ended.reason, ended.message]}),
        }


def remembered_one_shots(memory: Mapping[str, Any]) -> dict[str, OneShot]:
    """The records by uid. One that cannot be read was written by another version, and is dropped."""
    known: dict[str, OneShot] = {}
    entries = memory.get(ONE_SHOTS_KEY)
    for uid, value in entries.items() if isinstance(entries, Mapping) else ():
        try:
            places = tuple(
                OneShotPlace(str(node), int(place["chunks"]), int(place["room"]))
                for node, place in sorted(value.get("places", {}).items())
            )
            known[uid] = OneShot(
                int(value["left"]),
                tuple(map(str, value["nodes"])),
                str(value["filled"]),
                places,
                used=int(value.get("used", 0)),
                lost=int(value.get("lost", 0)),
                since=str(value.get("since", "")),
                ended=ending(*value["ended"]) if "ended" in value else None,
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return known


def ending(kind: str, reason: str, message: str) -> Condition:
    """The condition that ends a one-shot buffer."""
    return Condition(kind, ConditionStatus.TRUE, reason, message)
