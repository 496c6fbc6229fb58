"""Reads the repository, and the documents of its tree. Of a broken document the last good version stays in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.manifests.declared import KnownFiles, leaving_out, read, with_last_good
from reconciler.manifests.in_force import as_served
from reconciler.model.declared import Declared
from reconciler.model.findings import Finding
from reconciler.model.source import SourceTree
from reconciler.ports import Cluster, Source
from reconciler.stages.cluster_verdicts import ClusterVerdicts
from reconciler.stages.state import InputOrigin, PassState


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Reads the newest tree, or the last good one while the repository is stalled."""

    phase: ClassVar[str] = "git"

    source: Source

    def run(self, state: PassState) -> PassState:
        return replace(state, tree=self.source.read())


def emptied(tree: SourceTree) -> SourceTree:
    """Stalls on a tree without any document: that is more likely a mistake than an order to delete everything."""
    message = "nothing is declared any more: the last good commit stays in force (allowEmpty: true if that is meant)"
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
        self._left_out: Mapping[str, Finding] = {}
        self._documents: Declared | None = None
        self._known = KnownFiles()

    @property
    def last(self) -> Declared | None:
        """The last documents, with budgets in local time as they were written; None before the first pass."""
        return self._documents

    def run(self, state: PassState) -> PassState:
        left_out = {ref.name: finding for ref, finding in state.failed_on(InputOrigin.FILE).items()}
        tree = state.tree
        is_same = self._tree is not None and tree.files is self._tree.files and left_out == self._left_out
        if self._documents is None or not is_same or self._verdicts.are_due(state.now):
            written = self._read(tree, left_out)
            documents = with_last_good(as_served(written, self._verdicts.of(written, state.now)), self._documents)
            if self._documents is not None and self._is_emptied(documents, self._documents):
                manifests = self._documents.manifests
                return replace(state, repository=self._documents, written=manifests, tree=emptied(tree))
            self._documents, self._tree, self._left_out = documents, tree, left_out
        judged = leaving_out(self._documents, state.failed_on(InputOrigin.REPOSITORY))
        return replace(state, repository=judged, written=judged.manifests)

    def _read(self, tree: SourceTree, left_out: Mapping[str, Finding]) -> Declared:
        files = {path: content for path, content in tree.files.items() if path not in left_out}
        documents = read(files, skipped=tree.skipped, known=self._known)
        if not left_out:
            return documents
        findings = (*documents.findings, *left_out.values())
        return replace(documents, findings=findings, broken_files=documents.broken_files | left_out.keys())

    def _is_emptied(self, documents: Declared, before: Declared) -> bool:
        return documents.is_empty and not before.is_empty and not self._allow_empty
