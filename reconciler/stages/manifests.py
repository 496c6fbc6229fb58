"""Reads the documents of the tree, as they are: `cluster.py` beside it settles what of them is in force."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from reconciler.manifests.declared import read
from reconciler.manifests.known_files import KnownFiles
from reconciler.model.declared import Declared
from reconciler.model.source import SourceTree
from reconciler.stages.state import PassState


def emptied(tree: SourceTree) -> SourceTree:
    """Stalls on a tree without any document: that is more likely a mistake than an order to delete everything."""
    message = "there is no document any more: the last good commit stays in force (allowEmpty: true if that is meant)"
    return replace(tree, stalled=tree.stalled or ("NoDocuments", message))


class ReadManifests:
    """Reads no document again while the tree is the same, and stalls if all are gone."""

    phase: ClassVar[str] = "manifests"

    def __init__(self, *, allow_empty: bool) -> None:
        self._allow_empty = allow_empty
        self._tree: SourceTree | None = None
        self._documents: Declared | None = None
        self._known = KnownFiles()

    def run(self, state: PassState) -> PassState:
        if self._documents is None or self._tree is None or state.tree.files is not self._tree.files:
            documents = read(state.tree.files, skipped=state.tree.skipped, known=self._known)
            if self._documents is not None and self._is_emptied(documents, self._documents):
                return replace(state, repository=self._documents, tree=emptied(state.tree))
            self._documents, self._tree = documents, state.tree
        return replace(state, repository=self._documents)

    def _is_emptied(self, documents: Declared, before: Declared) -> bool:
        is_empty = not documents.documents and not documents.broken_files
        return is_empty and before.documents > 0 and not self._allow_empty
