"""One document of a manifest file, with the position of each of its nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.model.refs import SourcePosition

Path = tuple[str | int, ...]
"""A place inside a document: keys and list indexes from its root."""


class Marks:
    """The positions of all entries of the mappings and sequences of one file.

    They are stored by the container's identity. So documents stay plain values, an anchored part is stored once, and a position
    costs nothing until it is needed.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, dict[str | int, tuple[int, int]]] = {}

    def put(self, container: object, entries: dict[str | int, tuple[int, int]]) -> None:
        """Stores positions. entries: (line, column), from 1, by key or index. The container must live as long as these marks."""
        self._entries[id(container)] = entries

    def of(self, container: object) -> dict[str | int, tuple[int, int]]:
        return self._entries.get(id(container), {})


@dataclass(frozen=True, slots=True)
class Document:
    """value: plain JSON values as written, with nulls. position: of its first node. surplus: roughly how many characters its aliases add
    to what is written."""

    file: str
    value: Mapping[str, Any]
    position: SourcePosition
    marks: Marks
    surplus: int = 0

    def position_of(self, path: Path) -> SourcePosition:
        """The position of the node at the path, or of its nearest parent that was written."""
        where = self.position
        node: Any = self.value
        for step in path:
            mark = self.marks.of(node).get(step)
            if mark is None:
                break
            where = SourcePosition(self.file, *mark)
            node = node[step]
        return where

    @property
    def api_version(self) -> str:
        return _text(self.value.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.value.get("kind"))


def path_text(path: Sequence[str | int]) -> str:
    """`spec.disruption.budgets[0].nodes`; a key with a dot or slash is put in brackets: `metadata.labels['a/b']`."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif any(character in step for character in "./[]' ") or not step:
            parts.append(f"['{step}']")
        else:
            parts.append(f".{step}" if parts else step)
    return "".join(parts)


_STEP = re.compile(r"\[(\d+)\]|\['(.*?)'\]|\.?([^.\[\]]+)")


def path_of(text: str) -> Path:
    """The path whose `path_text` this is."""
    return tuple(int(index) if index else quoted or key for index, quoted, key in _STEP.findall(text))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
