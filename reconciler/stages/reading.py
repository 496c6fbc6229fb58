"""Reads the repository and the cluster, and lays what the one declares over what the other has.

Of a broken document the last good version stays in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.cluster.inventory import InventoryParent
from reconciler.manifests.local_budgets import in_utc, named_as_written
from reconciler.manifests.node_pool import NODE_POOL
from reconciler.manifests.repository.declared import KnownFiles, leaving_out, live_declared, read, with_last_good
from reconciler.manifests.repository.in_force import as_served, in_force
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.buffers import DEPLOYMENT_KIND
from reconciler.model.declared import Declared
from reconciler.model.findings import Finding
from reconciler.model.marks import PATH_ANNOTATION
from reconciler.model.pass_memory import PassMemory
from reconciler.model.source import SourceTree
from reconciler.model.view import ClusterView, identity_of
from reconciler.plan.codes import INVENTORY_OF_ANOTHER_PATH
from reconciler.ports import Catalog, Cluster, Source
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


@dataclass(frozen=True, slots=True)
class ReadCluster:
    phase: ClassVar[str] = "view"

    cluster: Cluster
    catalog: Catalog
    allow_empty: bool
    inventory: InventoryParent
    memory: PassMemory = field(default_factory=PassMemory)

    def run(self, state: PassState) -> PassState:
        failed = state.failed_on(InputOrigin.CLUSTER)
        seen = self.cluster.view()
        view = seen.without({ref: f"{ref} is set aside: {finding.message}" for ref, finding in failed.items()})
        live = live_declared(view, self.memory)
        unread = {found.ref: f"{found.ref}: {found.message}" for found in live.findings if found.ref is not None}
        view = view.without(
            {ref: why for ref, why in unread.items() if ref.kind != NODE_POOL.name}
        )  # pools have gaps already
        if state.on_trial:  # what a later stage leaves undone after an incomplete read must not look like success
            view = replace(view, complete=seen.complete)
        local = in_utc(state.repository, state.now)
        forms = in_force(local.declared, live, view.objects, view.apis)
        # After a restart only the inventory tells what was declared before. The buffer of balloon pods may be in the cluster only.
        was_declared = any(ref.kind != DEPLOYMENT_KIND for ref in view.inventory.members)
        is_emptied = was_declared and state.repository.is_empty and not self.allow_empty
        return replace(
            state,
            tree=emptied(state.tree) if is_emptied else state.tree,
            view=view,
            suspended=state.suspended or view.inventory.suspended,
            live=live,
            repository=forms.repository,
            effective=replace(forms.effective, node_pools=named_as_written(forms.effective.node_pools, local.pools)),
            local_budgets=local.pools,
            findings=(
                *_another_path(self.inventory, view),
                *failed.values(),
                *live.findings,
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *schedule_findings(forms.repository.schedules, state.now),
            ),
            instance_types=tuple(kind for kind in self.catalog.instance_types(view) if identity_of(kind) not in failed),
        )


def _another_path(inventory: InventoryParent, view: ClusterView) -> tuple[Finding, ...]:
    """The error of a folder that has no inventory of its own."""
    recorded = view.inventory.path
    if inventory.belongs_to(recorded):
        return ()
    code = INVENTORY_OF_ANOTHER_PATH
    message = f"the inventory {inventory.words} lists the objects of {recorded}, and this is {inventory.path}: nothing is written"
    hint = (
        "give each folder an inventory of its own (inventory.name); if the folder was moved, "
        f"kubectl -n {inventory.namespace} annotate configmap {inventory.name} {PATH_ANNOTATION}-"
    )
    return (Finding(code.name, code.severity, message, hint=hint),)
