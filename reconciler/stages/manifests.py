"""Reads the documents of the tree. Of a broken document the last good version stays in force."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from reconciler.manifests.declared import read
from reconciler.manifests.in_force import as_served
from reconciler.manifests.known_files import KnownFiles
from reconciler.manifests.last_good import with_last_good
from reconciler.model.declared import Declared
from reconciler.model.source import SourceTree
from reconciler.ports import Cluster
from reconciler.stages.cluster_verdicts import ClusterVerdicts
from reconciler.stages.state import PassState


def emptied(tree: SourceTree) -> SourceTree:
    """Stalls on a tree without any document: that is more likely a mistake than an order to delete everything."""
    message = "there is no document any more: the last good commit stays in force (allowEmpty: true if that is meant)"
    return replace(tree, stalled=tree.stalled or ("NoDocuments", message))


class ReadManifests:
    """Keeps the last good documents from pass to pass, and reads none again while the tree is the same.

    The cluster's verdicts count too: a document with a field that the cluster does not know is a broken one.
    """

    phase: ClassVar[str] = "manifests"

    def __init__(self, cluster: Cluster, *, allow_empty: bool) -> None:
        self._allow_empty = allow_empty
        self._verdicts = ClusterVerdicts(cluster)
        self._tree: SourceTree | None = None
        self._documents: Declared | None = None
        self._known = KnownFiles()

    @property
    def last(self) -> Declared | None:
        """The last documents, with budgets in local time as they were written; None before the first pass."""
        return self._documents

    def run(self, state: PassState) -> PassState:
        is_same = self._documents is not None and self._tree is not None and state.tree.files is self._tree.files
        if self._documents is None or not is_same or self._verdicts.are_due(state.now):
            written = read(state.tree.files, skipped=state.tree.skipped, known=self._known)
            documents = with_last_good(as_served(written, self._verdicts.of(written, state.now)), self._documents)
            if self._documents is not None and self._is_emptied(documents, self._documents):
                manifests = self._documents.manifests
                return replace(state, repository=self._documents, written=manifests, tree=emptied(state.tree))
            self._documents, self._tree = documents, state.tree
        return replace(state, repository=self._documents, written=self._documents.manifests)

    def _is_emptied(self, documents: Declared, before: Declared) -> bool:
        is_empty = not documents.documents and not documents.broken_files
        return is_empty and before.documents > 0 and not self._allow_empty
