"""Reads the documents of the tree. Of a broken document the last good version stays in force."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from reconciler.manifests.declared import read, with_last_good
from reconciler.model.declared import Declared
from reconciler.model.source import SourceTree
from reconciler.stages.state import PassState


class ReadManifests:
    """Keeps the last good documents from pass to pass, and reads none again while the tree is the same."""

    phase: ClassVar[str] = "manifests"

    def __init__(self) -> None:
        self._tree: SourceTree | None = None
        self._documents: Declared | None = None

    @property
    def last(self) -> Declared | None:
        """As read last, budgets in local time still as they were written; None before the first pass."""
        return self._documents

    def run(self, state: PassState) -> PassState:
        if self._documents is None or self._tree is None or state.tree.files is not self._tree.files:
            self._documents = with_last_good(read(state.tree.files), self._documents)
            self._tree = state.tree
        return replace(state, repository=self._documents)
