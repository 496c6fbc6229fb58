"""Reads the cluster, and lays what the repository declares over what the cluster has.

The cluster also says which fields it knows, so what is in force is settled here. Of a document with errors, or with a field that the
cluster would refuse, the last good version is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from reconciler.manifests import codes
from reconciler.manifests.declared import live_declared
from reconciler.manifests.in_force import Served, as_served, in_force, served_form, with_last_good
from reconciler.manifests.inspection import mapping_at
from reconciler.manifests.local_budgets import in_utc, named_as_written
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.balloons import DEPLOYMENT_KIND
from reconciler.model.changes import Apply
from reconciler.model.declared import Declared, DeclaredManifest, Doubtful
from reconciler.model.findings import Finding, Severity
from reconciler.model.pass_memory import PassMemory
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, Manifest
from reconciler.plan.objects.objects import SOURCE_ANNOTATION
from reconciler.ports import Catalog, Cluster
from reconciler.stages.manifests import emptied
from reconciler.stages.state import PassState

_ASKED_AGAIN = timedelta(minutes=1)
"""How long an answer holds that is not a plain yes: a newer definition may have been installed."""
_MOST_ANSWERS = 10_000
_FREE = frozenset({"labels", "annotations"})
_Verdicts = Mapping[ObjectRef, tuple[Finding, ...]]
_Shape = tuple[str, str, frozenset[str]]


class ReadCluster:
    """Keeps the documents in force from pass to pass, for those that have errors in the next."""

    phase: ClassVar[str] = "view"

    def __init__(self, cluster: Cluster, catalog: Catalog, *, allow_empty: bool) -> None:
        self._cluster = cluster
        self._catalog = catalog
        self._allow_empty = allow_empty
        self._memory = PassMemory()
        self._fields = _ServedFields(cluster)
        self._settled: tuple[Declared, _Verdicts] | None = None
        self._in_force: Declared | None = None

    @property
    def last(self) -> Declared | None:
        """The documents last in force, with budgets in local time as they were written; None before the first pass."""
        return self._in_force

    def run(self, state: PassState) -> PassState:
        view = self._cluster.view()
        live = live_declared(view, self._memory)
        repository = self._documents(state.repository, view, state.now)
        local = in_utc(repository, state.now)
        forms = in_force(local.declared, live, view.objects, view.apis)
        # After a restart only the inventory tells what was declared before. The buffer of balloon pods may be in the cluster only.
        was_declared = any(ref.kind != DEPLOYMENT_KIND for ref in view.inventory.members)
        is_emptied = was_declared and not repository.documents and not self._allow_empty
        return replace(
            state,
            tree=emptied(state.tree) if is_emptied and not repository.broken_files else state.tree,
            view=view,
            suspended=state.suspended or view.inventory.suspended,
            live=live,
            written=repository.manifests,
            repository=forms.repository,
            effective=replace(forms.effective, node_pools=named_as_written(forms.effective.node_pools, local.pools)),
            local_budgets=local.pools,
            findings=(
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *schedule_findings(forms.repository.schedules, state.now),
            ),
            instance_types=tuple(self._catalog.instance_types(view)),
        )

    def _documents(self, read: Declared, view: ClusterView, now: datetime) -> Declared:
        verdicts = {**self._fields.verdicts(read, view.apis, now), **_without_their_namespace(read, view)}
        if (
            self._in_force is None
            or self._settled is None
            or self._settled[0] is not read
            or self._settled[1] != verdicts
        ):
            self._in_force = with_last_good(as_served(read, verdicts), self._in_force)
            self._settled = (read, verdicts)
        return self._in_force


def _without_their_namespace(read: Declared, view: ClusterView) -> _Verdicts:
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
            path, code = "metadata.namespace", codes.MISSING_FIELD
            message = f"{path} is missing, and this object is in the namespace {namespace}: it would be deleted there"
            hint = f"write namespace: {namespace}, or namespace: {item.ref.namespace} if the object is to move"
            place = item.position_of(path)
            found[item.ref] = (Finding(code.name, code.severity, message, place, item.ref, path, hint),)
    return found


class _ServedFields:
    """Asks the cluster which fields it knows: once for all documents of a kind that have the same fields."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._answers: dict[_Shape, tuple[tuple[str, ...] | None, datetime]] = {}
        self._last: tuple[Declared, Served, datetime | None, _Verdicts] | None = None

    def verdicts(self, read: Declared, served: Served, now: datetime) -> _Verdicts:
        """By object, findings about fields that the cluster does not know. Absent are objects about which the cluster says nothing."""
        if self._last is not None:
            before, versions, expires, verdicts = self._last
            if before is read and versions == served and (expires is None or now < expires):
                return verdicts
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.clear()
        doubtful = {item.ref: item for item in read.doubtful}
        manifests = {item.ref: item for item in read.manifests}
        manifests |= {ref: item.manifest for ref, item in doubtful.items() if item.manifest is not None}
        found: dict[ObjectRef, tuple[Finding, ...]] = {}
        is_settled = True
        for ref, item in manifests.items():
            versions_of_kind = served.get((ref.group, ref.kind), ())
            form = None if served and not versions_of_kind else served_form(item, versions_of_kind)
            if form is None:
                continue
            unknown = self._unknown(ref, form, now)
            is_settled = is_settled and unknown == ()
            if unknown is not None:
                found[ref] = tuple(_finding(item, path, doubtful.get(ref)) for path in unknown)
        self._last = (read, served, None if is_settled else now + _ASKED_AGAIN, found)
        return found

    def _unknown(self, ref: ObjectRef, form: Manifest, now: datetime) -> tuple[str, ...] | None:
        shape = (str(form.get("apiVersion")), ref.kind, frozenset(_paths(form)))
        answer, asked = self._answers.get(shape, (None, None))
        if asked is None or (answer != () and now - asked >= _ASKED_AGAIN):
            answer = self._cluster.unknown_fields(Apply(ref, form))
            self._answers[shape] = (answer, now)
        return answer


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
    code = codes.FIELD_NOT_SERVED
    version = item.manifest.get("apiVersion")
    message = f"{path} is not a field of {item.ref.kind} in {version} as the cluster serves it"
    hint = "remove it or correct its name, or install the CustomResourceDefinition that has it"
    return Finding(code.name, code.severity, message, item.position_of(path), item.ref, path, hint)
