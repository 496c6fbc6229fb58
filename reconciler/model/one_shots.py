"""One-shot buffers that were filled: what the inventory remembers of them, by the uid of their object.

A buffer that is deleted and made again is another one, and is filled again.
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
    """chunks: those of the buffer that are left on this node; room: how many would fit beside the pods that run there."""

    node: str
    chunks: int
    room: int


@dataclass(frozen=True, slots=True)
class FilledOnce:
    """left: chunks whose room nobody has used; nodes: where they are, by name; filled: when, RFC 3339.

    places: the same chunks node by node; earlier versions wrote none.
    """

    left: int
    nodes: tuple[str, ...]
    filled: str
    places: tuple[OneShotPlace, ...] = ()

    @classmethod
    def on(cls, places: Iterable[OneShotPlace], filled: str) -> FilledOnce:
        """With what is left on these places."""
        kept = tuple(sorted((place for place in places if place.chunks), key=lambda place: place.node))
        return cls(sum(place.chunks for place in kept), tuple(place.node for place in kept), filled, kept)

    def as_json(self) -> dict[str, Any]:
        """As the inventory has it."""
        places = {place.node: {"chunks": place.chunks, "room": place.room} for place in self.places}
        return {"left": self.left, "nodes": list(self.nodes), "filled": self.filled, "places": places}


def remembered_one_shots(memory: Mapping[str, Any]) -> dict[str, FilledOnce]:
    """By uid. What does not read as written here was written by another version, and is forgotten."""
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
