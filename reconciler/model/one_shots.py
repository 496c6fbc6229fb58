"""One-shot buffers that were filled: what the inventory remembers of them, by the uid of their object.

A buffer that is deleted and created again has a new uid, and is filled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ONE_SHOT_ANNOTATION = "headroom.dev/one-shot"
"""With the value "true": filled once, and not filled again."""
ONE_SHOTS_KEY = "oneShots"


@dataclass(frozen=True, slots=True)
class OneShotPlace:
    """chunks: how many of the buffer's are left on this node. room: how many would fit beside the running pods."""

    node: str
    chunks: int
    room: int


@dataclass(frozen=True, slots=True)
class FilledOnce:
    """left: how many chunks have room that nobody has used. nodes: the names of their nodes. filled: when, RFC 3339.

    places: the same chunks node by node; earlier versions did not write them.
    """

    left: int
    nodes: tuple[str, ...]
    filled: str
    places: tuple[OneShotPlace, ...] = ()

    @classmethod
    def on(cls, places: Iterable[OneShotPlace], filled: str) -> FilledOnce:
        """The record of a buffer with these places left."""
        kept = tuple(sorted((place for place in places if place.chunks), key=lambda place: place.node))
        return cls(sum(place.chunks for place in kept), tuple(place.node for place in kept), filled, kept)

    def as_json(self) -> dict[str, Any]:
        """The record as the inventory stores it."""
        places = {place.node: {"chunks": place.chunks, "room": place.room} for place in self.places}
        return {"left": self.left, "nodes": list(self.nodes), "filled": self.filled, "places": places}


def remembered_one_shots(memory: Mapping[str, Any]) -> dict[str, FilledOnce]:
    """The records by uid. One that cannot be read was written by another version, and is dropped."""
    known: dict[str, FilledOnce] = {}
    entries = memory.get(ONE_SHOTS_KEY)
    for uid, value in entries.items() if isinstance(entries, Mapping) else ():
        try:
            places = tuple(
                OneShotPlace(str(node), int(place["chunks"]), int(place["room"]))
                for node, place in sorted(value.get("places", {}).items())
            )
            known[uid] = FilledOnce(int(value["left"]), tuple(map(str, value["nodes"])), str(value["filled"]), places)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return known
