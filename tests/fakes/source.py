"""A repository of a few files that the test changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.declared import SourceTree
from reconciler.ports import Source


class FakeSource(Source):
    """Empty unless told otherwise. Each commit is another tree."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.commit(files or {})

    def commit(self, files: Mapping[str, str], revision: str | None = None) -> None:
        self._tree = SourceTree(revision, {name: text.encode() for name, text in files.items()})

    def stall(self, why: str) -> None:
        """The newest state cannot be read: this is the last good one."""
        self._tree = replace(self._tree, stalled=("Stalled", why))

    def read(self) -> SourceTree:
        return self._tree

    def hasten(self) -> None: ...

    def close(self) -> None: ...
