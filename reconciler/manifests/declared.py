"""Everything that a repository, or a cluster, declares: the package's entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.known_files import KnownFiles
from reconciler.manifests.load import load
from reconciler.manifests.reading import ReadDocument
from reconciler.manifests.validate import duplicates, references, several_clusters
from reconciler.model.declared import Declared
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.model.pass_memory import PassMemory
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import ClusterView, LiveObject
from reconciler.model.workloads import PriorityClass

_SLOTS = (
    "buffers",
    "node_pools",
    "workloads",
    "priority_classes",
    "provisioning_requests",
    "provisioning_classes",
    "schedules",
    "node_overlays",
)


def read(
    files: Mapping[str, bytes],
    *,
    one_cluster: bool = True,
    skipped: Iterable[tuple[str, str]] = (),
    known: KnownFiles | None = None,
) -> Declared:
    """Every document of the files, typed and validated. Never raises: what is wrong is in `findings`.

    files: content by path inside the repository. one_cluster: all files are for one cluster, so an object may be declared
    once only; False: each folder `clusters/NAME/` is a cluster of its own. skipped: path and reason of each file that the
    source left out, which is an error: what it may declare is not in force. known: files that need not be read again.
    """
    known = known or KnownFiles()
    known.begin()
    loaded = load(files, known.items)
    documents = [known.document(document) for document in loaded.documents]
    doubled = duplicates(documents, one_cluster=one_cluster)
    refused = {finding.ref for finding in doubled}
    broken = {document.ref for document in documents if document.broken and document.ref is not None}
    broken |= {ref for ref in refused if ref is not None}
    sound = [document for document in documents if document.ref is not None and document.ref not in broken]
    findings: list[Finding] = [*map(left_out, skipped), *loaded.findings, *doubled, *references(sound)]
    if one_cluster:
        findings += several_clusters(documents)
    for document in documents:
        findings += document.findings
    return Declared(
        **_slots(sound),
        manifests=tuple(
            sorted(
                (document.manifest for document in sound if document.manifest is not None),
                key=lambda manifest: (manifest.ref, manifest.position),
            ),
        ),
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        broken_files=loaded.broken_files | {document.document.file for document in documents if document.nameless},
        broken=frozenset(broken),
        documents=len(loaded.documents),
    )


def left_out(skipped: tuple[str, str]) -> Finding:
    """The finding about a file that was not read. skipped: its path, and why."""
    path, why = skipped
    code = codes.LEFT_OUT
    return Finding(code.name, code.severity, f"not read: {why}", SourcePosition(path, 1))


def read_live(objects: Iterable[LiveObject], memory: PassMemory | None = None) -> Declared:
    """What the cluster's own objects declare. What cannot be read there is left out: the API server has accepted it."""
    memory = memory or PassMemory()
    memory.begin()
    slots: dict[str, list[Any]] = {slot: [] for slot in _SLOTS}
    for item in objects:
        kind = kind_of(item.ref.group, item.ref.kind)
        typed = None if kind is None else memory.once(item.ref, _typed, kind, item)
        if kind is not None and typed is not None:
            slots[kind.slot].append(typed)
    return Declared(**_sorted_slots(slots))


def _typed(kind: Kind, item: LiveObject) -> Any:
    try:
        return kind.read(item.ref, item.body, Origin(managers=item.managers))
    except Exception:  # noqa: BLE001 - an object of an unknown version, or odder; it must not stop the pass
        return None


def live_declared(view: ClusterView, memory: PassMemory | None = None) -> Declared:
    """All that the cluster itself declares: its objects, and the view's workloads and priority classes."""
    live = read_live(view.objects.values(), memory)
    workloads = sorted((*live.workloads, *view.workloads), key=_order)
    priorities = sorted((*live.priority_classes, *view.priority_classes), key=_order)
    return replace(live, workloads=tuple(workloads), priority_classes=tuple(priorities))


def with_last_good(current: Declared, previous: Declared | None) -> Declared:
    """What is in force: the current documents, and the last good version of those that can no longer be read.

    A document is unreadable if it is broken itself, or missing from a file of which a part is broken. The findings are the
    current ones.
    """
    if previous is None or not (current.broken or current.broken_files):
        return current

    def is_kept(ref: ObjectRef, position: SourcePosition | None) -> bool:
        return ref in current.broken or (position is not None and position.file in current.broken_files)

    slots: dict[str, Any] = {}
    for slot in _SLOTS:
        values = getattr(current, slot)
        present = {_ref(value) for value in values}
        kept = [
            value
            for value in getattr(previous, slot)
            if _ref(value) not in present and is_kept(_ref(value), value.position)
        ]
        slots[slot] = tuple(sorted((*values, *kept), key=_order))
    present = {manifest.ref for manifest in current.manifests}
    kept_manifests = [
        manifest
        for manifest in previous.manifests
        if manifest.ref not in present and is_kept(manifest.ref, manifest.position)
    ]
    manifests = sorted((*current.manifests, *kept_manifests), key=lambda manifest: (manifest.ref, manifest.position))
    return replace(current, **slots, manifests=tuple(manifests))


def _slots(documents: Iterable[ReadDocument]) -> dict[str, Any]:
    slots: dict[str, list[Any]] = {slot: [] for slot in _SLOTS}
    for document in documents:
        if document.kind is not None and document.typed is not None:
            slots[document.kind.slot].append(document.typed)
    return _sorted_slots(slots)


def _sorted_slots(slots: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {slot: tuple(sorted(values, key=_order)) for slot, values in slots.items()}


def _ref(value: Any) -> ObjectRef:
    match value:
        case NodePool():
            return ObjectRef("karpenter.sh", "NodePool", "", value.name)
        case PriorityClass():
            return ObjectRef("scheduling.k8s.io", "PriorityClass", "", value.name)
        case _:
            ref: ObjectRef = value.ref
            return ref


def _order(value: Any) -> tuple[str, str, str, str]:
    ref = _ref(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)
