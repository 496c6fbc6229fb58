"""One-shot buffers that were filled: what the inventory remembers of them, by the uid of their object.

A buffer that is deleted and made again is another one, and is filled again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ONE_SHOT_ANNOTATION = "headroom.dev/one-shot"
"""With the value "true": filled once, and not filled again."""
ONE_SHOTS_KEY = "oneShots"


@dataclass(frozen=True, slots=True)
class FilledOnce:
    """left: chunks whose room nobody has used; nodes: where they are, by name; filled: when, RFC 3339."""

    left: int
    nodes: tuple[str, ...]
    filled: str

    def as_json(self) -> dict[str, Any]:
        """As the inventory has it."""
        return {"left": self.left, "nodes": list(self.nodes), "filled": self.filled}


def remembered_one_shots(memory: Mapping[str, Any]) -> dict[str, FilledOnce]:
    """By uid. What does not read as written here was written by another version, and is forgotten."""
    known: dict[str, FilledOnce] = {}
    entries = memory.get(ONE_SHOTS_KEY)
    for uid, value in entries.items() if isinstance(entries, Mapping) else ():
        try:
            known[uid] = FilledOnce(int(value["left"]), tuple(map(str, value["nodes"])), str(value["filled"]))
        except (KeyError, TypeError, ValueError):
            continue
    return known
