"""Reads the repository and the cluster, and lays what the one declares over what the other has.

Of a broken document the last good version stays in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from reconciler.cluster.apply import InventoryParent
from reconciler.demand.node_class import pools_of
from reconciler.demand.resolve import POD_TEMPLATE, group_of
from reconciler.manifests.budgets import ALLOW_WINDOWS, TIME_ZONE
from reconciler.manifests.documents.document import mapping_at
from reconciler.manifests.documents.structure import near_one
from reconciler.manifests.local_budgets import InUtc, in_utc, named_as_written
from reconciler.manifests.node_pool import NODE_POOL
from reconciler.manifests.repository.declared import (
    KnownFiles,
    every_object,
    leaving_out,
    live_declared,
    read,
    read_live,
    with_last_good,
    without_refused,
)
from reconciler.manifests.repository.in_force import as_served, in_force, served_form
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model import codes
from reconciler.model.buffers import DEPLOYMENT_KIND, Buffer
from reconciler.model.changes import Apply
from reconciler.model.declared import Declared, DeclaredManifest, Doubtful, SourceTree
from reconciler.model.findings import Finding, Severity
from reconciler.model.marks import PATH_ANNOTATION
from reconciler.model.nodes import NodePool
from reconciler.model.pods import GROUP_OF_WORKLOAD
from reconciler.model.refs import ObjectRef, abridged, by_key
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView, Manifest, identity_of
from reconciler.plan.objects.objects import SOURCE_ANNOTATION
from reconciler.ports import Catalog, Cluster, Source
from reconciler.report.words import short_revision
from reconciler.stages.state import InputOrigin, PassState


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Reads the newest tree, or the last good one while the repository is stalled."""

    phase: ClassVar[str] = "git"

    source: Source

    def run(self, state: PassState) -> PassState:
        return replace(state, tree=self.source.read())


@dataclass(frozen=True, slots=True)
class ReadCluster:
    """Waits for the cluster once. Whatever a pass knows of the cluster is from this view."""

    phase: ClassVar[str] = "view"

    cluster: Cluster

    def run(self, state: PassState) -> PassState:
        return replace(state, view=self.cluster.view())


def emptied(tree: SourceTree) -> SourceTree:
    """Stalls on a tree without any document: that is more likely a mistake than an order to delete everything."""
    message = "nothing is declared any more (allowEmpty: true if that is meant)"
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
        self._taken: dict[ObjectRef, str | None] = {}
        """The revision whose version is in force, of each object whose present document has errors."""
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
            documents = as_served(written, self._verdicts.of(written, state.view, state.now))
            if state.settled and self._documents is not None:  # what was read before is in the cluster by then
                documents = without_refused(documents, self._documents, state.view.objects)
            documents = with_last_good(documents, self._documents)
            if self._documents is not None and self._is_emptied(documents, self._documents):
                manifests = self._documents.manifests
                return replace(state, repository=self._documents, written=manifests, tree=emptied(tree))
            before = None if self._tree is None else self._tree.revision
            self._taken = {ref: self._taken.get(ref, before) for ref in documents.kept}
            self._documents, self._tree, self._left_out = documents, tree, left_out
        failed = state.failed_on(InputOrigin.REPOSITORY)
        judged = leaving_out(self._documents, failed.values())
        notes = (*state.notes, *self._older(self._documents))
        return replace(state, repository=judged, written=judged.manifests, notes=notes)

    def _older(self, documents: Declared) -> Iterator[str]:
        """Which commit's version of a file is in force, and for which objects: a sentence for each file and commit."""
        places = {ref: item.position for ref, item in every_object(documents)} if self._taken else {}
        taken = sorted(self._taken.items())
        older = by_key(((places[ref].file, short_revision(revision)), ref) for ref, revision in taken)
        for (file, words), refs in sorted(older.items()):
            verb = "stays" if len(refs) == 1 else "stay"
            yield f"{file}: {abridged(refs, _MOST_NAMED)} {verb} as in {words}, since the file has errors now"

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
class FindInForce:
    """Takes out of the view what a stage failed on or nobody can read, and lays the documents over the rest."""

    phase: ClassVar[str] = "view"

    catalog: Catalog
    allow_empty: bool
    inventory: InventoryParent
    cache: PassCache = field(default_factory=PassCache)

    def run(self, state: PassState) -> PassState:
        failed = state.failed_on(InputOrigin.CLUSTER)
        seen = state.view
        view = seen.without({ref: f"{ref} is set aside: {finding.message}" for ref, finding in failed.items()})
        live = live_declared(view, self.cache)
        unread = {found.ref: f"{found.ref}: {found.message}" for found in live.findings if found.ref is not None}
        view = view.without(
            {ref: why for ref, why in unread.items() if ref.kind != NODE_POOL.name}
        )  # pools have gaps already
        if state.on_trial:  # what a later stage leaves undone after an incomplete read must not look like success
            view = replace(view, complete=seen.complete)
        local = in_utc(state.repository, state.now) if _has_local_budgets(state.repository) else InUtc(state.repository)
        forms = in_force(local.declared, live, view.objects, view.apis)
        effective = forms.effective
        if local.pools:
            effective = replace(effective, node_pools=named_as_written(effective.node_pools, local.pools))
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
            effective=effective,
            local_budgets=local.pools,
            findings=(
                *_another_path(self.inventory, view),
                *failed.values(),
                *live.findings,
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *(schedule_findings(schedules, state.now) if (schedules := forms.repository.schedules) else ()),
            ),
            instance_types=tuple(kind for kind in self.catalog.instance_types(view) if identity_of(kind) not in failed),
        )


def _has_local_budgets(repository: Declared) -> bool:
    """Whether a NodePool has budgets in local time, or windows outside of which nothing may go."""
    pools = (item for item in repository.manifests if item.ref.kind == NODE_POOL.name)
    asking = {TIME_ZONE, ALLOW_WINDOWS}
    return any(not asking.isdisjoint(mapping_at(item.manifest, "metadata", "annotations")) for item in pools)


def _another_path(inventory: InventoryParent, view: ClusterView) -> tuple[Finding, ...]:
    """The error of a folder that has no inventory of its own."""
    recorded = view.inventory.path
    if inventory.belongs_to(recorded):
        return ()
    message = f"the inventory {inventory.words} lists the objects of {recorded}, and this is {inventory.path}: nothing is written"
    hint = (
        "give each folder an inventory of its own (inventory.name); if the folder was moved, "
        f"kubectl -n {inventory.namespace} annotate configmap {inventory.name} {PATH_ANNOTATION}-"
    )
    return (codes.INVENTORY_OF_ANOTHER_PATH.finding(message, hint=hint),)


_ASKED_AGAIN = timedelta(minutes=1)
"""How long an answer holds that is not a plain yes: a newer definition may have been installed."""
_MOST_ANSWERS = 10_000
_MOST_NAMED = 3
_FREE = frozenset({"labels", "annotations"})
_KEYS = {POD_TEMPLATE: "podTemplateRef", "Buffer": "targetRef"}
"""The field of a reference, by the kind that is referred to or the kind of the buffer."""
Verdicts = Mapping[ObjectRef, tuple[Finding, ...]]
_Shape = tuple[str, str, frozenset[str]]


class ClusterVerdicts:
    """Asks which fields the cluster knows: once for all documents of a kind that have the same fields."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._answers: dict[_Shape, tuple[tuple[str, ...] | None, datetime]] = {}
        self._expire: datetime | None = None

    def are_due(self, now: datetime) -> bool:
        """Whether the last verdicts may have changed, though the documents have not."""
        return self._expire is not None and now >= self._expire

    def of(self, read: Declared, view: ClusterView, now: datetime) -> Verdicts:
        """The verdicts on these documents. Absent are objects about which the cluster says nothing."""
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.clear()
        doubtful = {item.ref: item for item in read.doubtful}
        manifests = {item.ref: item for item in read.manifests}
        manifests |= {ref: item.manifest for ref, item in doubtful.items() if item.manifest is not None}
        found = {**_without_their_namespace(read, view), **_without_their_reference(read, view)}
        is_settled = not found
        for ref, item in manifests.items():
            versions = view.apis.get((ref.group, ref.kind), ())
            form = None if view.apis and not versions else served_form(item, versions)
            unknown = None if form is None else self._unknown(ref, form, now)
            is_settled = is_settled and unknown == ()
            if unknown is not None and ref not in found:
                found[ref] = tuple(_finding(item, path, doubtful.get(ref)) for path in unknown)
        self._expire = None if is_settled else now + _ASKED_AGAIN
        return found

    def _unknown(self, ref: ObjectRef, form: Manifest, now: datetime) -> tuple[str, ...] | None:
        shape = (str(form.get("apiVersion")), ref.kind, frozenset(_paths(form)))
        answer, asked = self._answers.get(shape, (None, None))
        if asked is None or (answer != () and now - asked >= _ASKED_AGAIN):
            answer = self._cluster.unknown_fields(Apply(ref, form))
            self._answers[shape] = (answer, now)
        return answer


def _without_their_namespace(read: Declared, view: ClusterView) -> Verdicts:
    """Findings about documents that have lost their namespace: the same file declared the object in another one before."""
    lost = [
        item
        for item in read.manifests
        if item.ref.namespace and not mapping_at(item.manifest, "metadata").get("namespace")
    ]
    if not lost:
        return {}
    declared = {item.ref for item in read.manifests}
    before: dict[tuple[str, ObjectRef], str] = {}
    for ref in sorted(view.inventory.members - declared):
        live = view.objects.get(ref)
        if live is not None and ref.namespace:
            file = mapping_at(live.body, "metadata", "annotations").get(SOURCE_ANNOTATION, "")
            before[file, ref._replace(namespace="")] = ref.namespace
    found = {}
    for item in lost:
        namespace = before.get((item.position.file, item.ref._replace(namespace="")))
        if namespace is not None:
            path = "metadata.namespace"
            message = f"{path} is missing, and this object is in the namespace {namespace}: it would be deleted there"
            hint = f"write namespace: {namespace}, or namespace: {item.ref.namespace} if the object is to move"
            place = item.position_of(path)
            found[item.ref] = (codes.MISSING_FIELD.finding(message, place, item.ref, path, hint),)
    return found


def _without_their_reference(read: Declared, view: ClusterView) -> Verdicts:
    """Findings about buffers that refer to nothing there is, while the same buffer in the cluster does: its nodes would be released."""
    there = {_without_group(item.ref) for item in (*read.workloads, *view.workloads)}
    there |= {_without_group(ref) for ref in (*view.objects, *read.broken)}
    pools = read.node_pools
    if any(item.node_class is not None for item in read.buffers):
        pools += read_live(item for item in view.objects.values() if item.ref.kind == NODE_POOL.name).node_pools
    manifests = {item.ref: item for item in read.manifests}
    found = {}
    for item in read.buffers:
        live = view.objects.get(item.ref)
        if live is None or item.ref not in view.inventory.members or _leads_somewhere(item, there, pools) is not False:
            continue
        if any(_leads_somewhere(before, there, pools) for before in read_live([live]).buffers):
            now = _reference(item)
            theirs = f" of group {now.group}" if now is not None and now.group not in {"", group_of(now)} else ""
            words = "it refers to nothing" if now is None else f"{now}{theirs} does not exist"
            message = f"{words}, but the buffer in the cluster refers to what does: its nodes would be released"
            hint = "correct the name; if the object is to come later, the buffer changes within a minute of that"
            path = (
                "spec" if now is None else f"spec.{_KEYS.get(now.kind, _KEYS.get(item.ref.kind, 'scalableRef'))}.name"
            )
            place = manifests[item.ref].position_of(path)
            found[item.ref] = (codes.REFERENCE_LOST.finding(message, place, item.ref, path, hint),)
    return found


def _reference(buffer: Buffer) -> ObjectRef | None:
    if buffer.pod_template is not None:
        return ObjectRef("", POD_TEMPLATE, buffer.ref.namespace, buffer.pod_template)
    return buffer.target


def _leads_somewhere(buffer: Buffer, there: AbstractSet[ObjectRef], pools: Sequence[NodePool]) -> bool | None:
    """Whether what the buffer refers to exists. None: it needs no reference, or headroom does not know all objects of that kind."""
    target = _reference(buffer)
    if buffer.node_class is not None:
        return target is None or bool(pools_of(target, pools))
    if target is None:
        return None if buffer.pod_shape is not None else False
    if target.kind in {POD_TEMPLATE, *GROUP_OF_WORKLOAD}:
        return target.group in {"", group_of(target)} and _without_group(target) in there
    return False if near_one(target.kind, GROUP_OF_WORKLOAD) and _without_group(target) not in there else None


def _without_group(ref: ObjectRef) -> ObjectRef:
    return ref._replace(group="")  # a reference may leave it out


def _paths(node: Any, path: str = "") -> Iterator[str]:
    """The path of each field, the same for all items of a list. What people choose as labels and annotations is left out."""
    if isinstance(node, Mapping):
        for key, inner in node.items():
            yield f"{path}.{key}"
            if key not in _FREE:
                yield from _paths(inner, f"{path}.{key}")
    elif isinstance(node, list):
        for inner in node:
            yield from _paths(inner, f"{path}[]")


def _finding(item: DeclaredManifest, path: str, doubtful: Doubtful | None) -> Finding:
    """The doubt about the field, if it is an error: its hint names a field that is near."""
    doubts = () if doubtful is None else doubtful.doubts
    doubt = next((doubt for doubt in doubts if doubt.path == path), None)
    if doubt is not None and doubt.severity is Severity.ERROR:
        return doubt
    version = item.manifest.get("apiVersion")
    message = f"{path} is not a field of {item.ref.kind} in {version} as the cluster serves it"
    hint = "remove it or correct its name, or install the CustomResourceDefinition that has it"
    return codes.FIELD_NOT_SERVED.finding(message, item.position_of(path), item.ref, path, hint)
