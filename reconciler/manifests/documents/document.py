"""One document of a manifest file: the positions of its nodes, and the findings about it while it is being read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reconciler.model import codes
from reconciler.model.findings import Code, Finding, Severity
from reconciler.model.refs import ObjectRef, Path, SourcePosition, path_text


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


_STEP = re.compile(r"\[(\d+)\]|\['(.*?)'\]|\.?([^.\[\]]+)")


def path_of(text: str) -> Path:
    """The path whose `path_text` this is."""
    return tuple(int(index) if index else quoted or key for index, quoted, key in _STEP.findall(text))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_LONGEST_WORD = 150


def unreadable(error: Exception, position: SourcePosition | None, ref: ObjectRef | None) -> Finding:
    """The finding for a document that a rule failed on, which is a defect of headroom."""
    message = f"headroom failed to read this {'document' if position else 'object'} ({type(error).__name__}): {error}"
    return codes.NOT_READ.finding(
        message,
        position,
        ref,
        hint="report it, and leave the document out until then"
        if position
        else "correct it, or report it if it is valid",
    )


class Inspection:
    """One document, its identity, and the fields that were moved when old spellings were corrected.

    body: the corrected copy that the rules judge, plain values without nulls. Paths given to `report` are paths in the body;
    findings show them as written in the file.
    """

    def __init__(self, document: Document, ref: ObjectRef, body: dict[str, Any]) -> None:
        self.document = document
        self.ref = ref
        self.body = body
        self.findings: list[Finding] = []
        self.doubts: list[Finding] = []
        """Fields that the shipped schema does not have. A cluster may know better: see `Doubtful`."""
        self.nulls: Mapping[Path, Sequence[str]] = {}
        """The keys whose value is null, by the path in the file of their mapping. The body does not have them."""
        self._moved: dict[Path, Path] = {}
        self._unknown: list[Path] = []

    def moved(self, new: Path, old: Path) -> None:
        """Records that the field now at `new` was written at `old`."""
        self._moved[new] = old

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> bool:
        """Moves a field in an old spelling to the present one, and reports that. False where it is absent, or its new place is taken."""
        holder = self.get(*old[:-1])
        if not isinstance(holder, dict) or old[-1] not in holder or self.get(*new) is not None:
            return False
        target: Any = self.body
        for step in new[:-1]:
            target = target.setdefault(step, {})
            if not isinstance(target, dict):
                return False
        target[new[-1]] = holder.pop(old[-1])
        self.report(
            codes.OLD_SPELLING, old, f"{'.'.join(old)} is read as {'.'.join(new)}", hint=f"write {'.'.join(new)}"
        )
        self.moved(new, old)
        return True

    def drop_unknown(self) -> None:
        """Removes the fields that are in doubt from the body."""
        for path in self._unknown:
            node: Any = self.body
            with suppress(KeyError):  # what is around it may be gone already
                for step in path[:-1]:
                    node = node[step]
                del node[path[-1]]

    def written_path(self, path: Path) -> Path:
        """The path in the file of the field at this path of the body."""
        for length in range(len(path), 0, -1):
            old = self._moved.get(path[:length])
            if old is not None:
                return (*old, *path[length:])
        return path

    def report(self, code: Code, path: Path, message: str, *, hint: str = "") -> None:
        self.findings.append(self._finding(code, path, message, hint))

    def doubt(self, code: Code, path: Path, message: str, *, hint: str = "") -> None:
        """Reports a field that the shipped schema does not have, once."""
        finding = self._finding(code, path, message, hint)
        if all(other.path != finding.path for other in self.doubts):
            self._unknown.append(path)
            self.doubts.append(finding)

    def _finding(self, code: Code, path: Path, message: str, hint: str) -> Finding:
        written = self.written_path(path)
        return code.finding(_cut(message), self.document.position_of(written), self.ref, path_text(written), _cut(hint))

    def position_of(self, path: Path) -> SourcePosition:
        return self.document.position_of(self.written_path(path))

    def place(self, path: str) -> SourcePosition:
        """The position of the field with this `path_text`."""
        return self.position_of(path_of(path))

    @property
    def failed(self) -> bool:
        """Whether any finding so far is an error."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def get(self, *path: str) -> Any:
        """The value at a path of mapping keys; None where any of them is absent."""
        node: Any = self.body
        for step in path:
            if not isinstance(node, Mapping):
                return None
            node = node.get(step)
        return node


def _cut(text: str) -> str:
    """Cuts long words to what a person can read. A quoted value may be as long as its file."""
    words = (word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…" for word in text.split(" "))
    return " ".join(words)


_MAPPINGS = (dict, Mapping)
"""dict comes first, since it is nearly always the answer. A check against the abstract class takes ten times as long."""


def mapping_at(node: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """The mapping at a path; {} where it is absent or not a mapping."""
    value: Any = node
    for step in path:
        value = value.get(step) if isinstance(value, _MAPPINGS) else None
    return value if isinstance(value, dict) else {}
