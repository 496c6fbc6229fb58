"""How objects, places in manifests and many names at once are written. And things brought together by a key (`by_key`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

DEFAULT_NAMESPACE = "default"
Key = TypeVar("Key")
Value = TypeVar("Value")


class ObjectRef(NamedTuple):
    """One object in a cluster or a repository. `group` is "" for the core API, `namespace` "" for cluster-scoped kinds.

    The version is left out on purpose, since it does not identify an object. It is a named tuple because most tables have it as
    their key: it is hashed and compared a hundred thousand times in a pass.
    """

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`CapacityBuffer/shop/web` or `NodePool/general`: the form that commands take and print."""
        if not self.name:
            return f"{self.kind} without a name"
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    @property
    def short(self) -> str:
        """`shop/web`; `NodePool/general` for what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else str(self)


@dataclass(frozen=True, slots=True, order=True)
class SourcePosition:
    """A place in a manifest: path inside the repository, line and column from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def in_file(self) -> str:
        """The place without its column."""
        return f"{self.file}:{self.line}"


POD_KIND = "Pod"


LONGEST = 63
"""The API server's limit for both, in characters."""


def label_value(name: str, *, digits: int) -> str:
    """The name. One that is too long is cut and ends in the first `digits` digits of its digest, so that different names stay different."""
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:digits]
    return f"{name[: LONGEST - digits - 1]}-{digest}"


def counted(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`, `1,000 nodes`."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def abridged(names: Iterable[object], most: int) -> str:
    """`a`, `a, b`, and of more than `most` names `a, b and 7 more`. Messages of ten thousand names help nobody."""
    words = [str(name) for name in names]
    left = len(words) - most
    return ", ".join(words[:most]) + (f" and {left:,} more" if left > 0 else "")


def listed(parts: Iterable[str], *, most: int | None = None, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`. Of more than `most` parts the rest is counted: `a, b and 7 more`."""
    items = list(parts)
    if most is not None and len(items) > most:
        items[most:] = [f"{len(items) - most:,} more"]
    if len(items) < 2:  # noqa: PLR2004 - one item needs no such word
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


_SIMPLE_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


Path = tuple[str | int, ...]
"""A place inside a document: keys and list indexes from its root."""


def path_text(path: Path) -> str:
    """`spec.disruption.budgets[0].nodes`; a key with a dot or slash in brackets: `metadata.labels['a/b']`."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step and set(step) <= _SIMPLE_KEY:
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"['{step}']")
    return "".join(parts)


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, keys and values in the order in which they come."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
