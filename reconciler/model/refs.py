"""How objects and places in manifests are named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_NAMESPACE = "default"


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


@dataclass(frozen=True, slots=True, order=True)
class SourcePosition:
    """A place in a manifest: path inside the repository, line and column from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
