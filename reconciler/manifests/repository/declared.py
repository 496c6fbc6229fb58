"""From the files of a tree to everything that they declare, with the last good version of what is broken.

From pass to pass, only what depends on a single file's path and content is kept. What depends on several files is computed each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests.documents.document import Document, unreadable
from reconciler.manifests.documents.load import load, load_file, without_nulls
from reconciler.manifests.documents.structure import check_types
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.repository.reading import ReadDocument, read_document
from reconciler.manifests.repository.validate import duplicates, references, several_clusters
from reconciler.model import codes
from reconciler.model.declared import Declared
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef, SourcePosition, abridged
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView, LiveObject, identity_of

_File = tuple[str, bytes]


class KnownFiles:
    """The files of the tree that was read last, and of the one being read."""

    def __init__(self) -> None:
        self._items: dict[_File, tuple[Document | Finding, ...]] = {}
        self._read: dict[int, ReadDocument] = {}
        self._before: tuple[dict[_File, tuple[Document | Finding, ...]], dict[int, ReadDocument]] = ({}, {})

    def begin(self) -> None:
        """Begins another tree. Files that are in neither this tree nor the last are dropped."""
        self._before = (self._items, self._read)
        self._items, self._read = {}, {}

    def items(self, path: str, content: bytes) -> tuple[Document | Finding, ...]:
        """The same as `load_file`, from the cache where possible."""
        key = (path, content)
        documents = self._before[0].get(key)
        self._items[key] = tuple(load_file(path, content)) if documents is None else documents
        return self._items[key]

    def document(self, document: Document) -> ReadDocument:
        """The same as `read_document`, from the cache where possible. The result keeps the document alive, since its id is the key."""
        read = self._before[1].get(id(document))
        if read is None or read.document is not document:
            read = read_document(document)
        self._read[id(document)] = read
        return read


SLOTS = (
    "buffers",
    "node_pools",
    "workloads",
    "priority_classes",
    "provisioning_requests",
    "provisioning_classes",
    "schedules",
    "node_overlays",
)
"""The fields of `Declared` that hold typed values, one for each kind."""


def place_in_order(value: Any) -> tuple[str, str, str, str]:
    """The sort key of the values of a field."""
    ref = ref_of(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)


def with_last_good(current: Declared, previous: Declared | None) -> Declared:
    """What is in force: the current documents, and the last good version of those that cannot be read any more.

    A document cannot be read if it is broken, or if it is missing from a file that is broken in part. The findings are the current
    ones.
    """
    if previous is None or not (current.broken or current.broken_files):
        return current

    def is_kept(ref: ObjectRef, position: SourcePosition | None) -> bool:
        return ref in current.broken or (position is not None and position.file in current.broken_files)

    slots: dict[str, Any] = {}
    older: set[ObjectRef] = set()
    for slot in SLOTS:
        values = getattr(current, slot)
        present = {ref_of(value) for value in values}
        kept = [
            value
            for value in getattr(previous, slot)
            if ref_of(value) not in present and is_kept(ref_of(value), value.position)
        ]
        older.update(map(ref_of, kept))
        slots[slot] = tuple(sorted((*values, *kept), key=place_in_order))
    present = {manifest.ref for manifest in current.manifests}
    kept_manifests = [
        manifest
        for manifest in previous.manifests
        if manifest.ref not in present and is_kept(manifest.ref, manifest.position)
    ]
    manifests = sorted((*current.manifests, *kept_manifests), key=lambda manifest: (manifest.ref, manifest.position))
    older.update(manifest.ref for manifest in kept_manifests)
    return replace(current, **slots, manifests=tuple(manifests), kept=frozenset(older))


def every_object(declared: Declared) -> Iterator[tuple[ObjectRef, Any]]:
    """Every object that the documents declare, typed or as a manifest, with its position."""
    for slot in SLOTS:
        yield from ((ref_of(value), value) for value in getattr(declared, slot))
    yield from ((item.ref, item) for item in declared.manifests)


def leaving_out(declared: Declared, failed: Mapping[ObjectRef, Finding]) -> Declared:
    """The documents without those that a rule of headroom failed on. They count as broken: what the cluster has of them stays."""
    if not failed:
        return declared
    slots: dict[str, Any] = {
        slot: tuple(value for value in getattr(declared, slot) if ref_of(value) not in failed) for slot in SLOTS
    }
    return replace(
        declared,
        **slots,
        manifests=tuple(item for item in declared.manifests if item.ref not in failed),
        findings=(*declared.findings, *failed.values()),
        broken=declared.broken | failed.keys(),
    )


def ref_of(value: Any) -> ObjectRef:
    ref = identity_of(value)
    assert ref is not None
    return ref


_MOST_KINDS = 4


def read(
    files: Mapping[str, bytes],
    *,
    one_cluster: bool = True,
    skipped: Iterable[tuple[str, str]] = (),
    known: KnownFiles | None = None,
) -> Declared:
    """Every document of the files, typed and validated. Never raises: what is wrong is in `findings`.

    files: content by path inside the repository. one_cluster: whether all files are for one cluster, so that an object may be
    declared only once. If False, each folder `clusters/NAME/` is a cluster of its own. skipped: path and reason of each file that
    the source left out. That is an error, since what the file declares is not in force. known: files read before.
    """
    known = known or KnownFiles()
    known.begin()
    loaded = load(files, known.items)
    documents = [known.document(document) for document in loaded.documents]
    doubled = duplicates(documents, one_cluster=one_cluster)
    refused = {finding.ref for finding in doubled}
    broken = {document.ref for document in documents if document.broken and document.ref is not None}
    broken |= {ref for ref in refused if ref is not None}
    whole = [document for document in documents if document.ref is not None and document.ref not in broken]
    doubtful = [document.doubtful for document in whole if document.doubtful is not None]
    broken |= {item.ref for item in doubtful if item.is_broken}
    sound = [document for document in whole if document.ref not in broken]
    findings: list[Finding] = [*map(left_out, skipped), *loaded.findings, *doubled, *references(whole, broken)]
    if one_cluster:
        findings += several_clusters(documents)
    findings += _ignored(documents)
    for document in documents:
        findings += (*document.findings, *(document.doubtful.doubts if document.doubtful else ()))
    return Declared(
        **_slots(sound),
        manifests=tuple(
            sorted(
                (document.manifest for document in sound if document.manifest is not None),
                key=lambda manifest: (manifest.ref, manifest.position),
            )
        ),
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        broken_files=files_with_errors(findings),
        broken=frozenset(broken),
        doubtful=tuple(doubtful),
        documents=len(loaded.documents),
    )


def _ignored(documents: Iterable[ReadDocument]) -> tuple[Finding, ...]:
    """One note about all documents of kinds that headroom does not read, or none."""
    others = [item.document for item in documents if item.kind is None and not item.findings]
    if not others:
        return ()
    kinds = sorted({document.kind or "no kind" for document in others})
    code, noun = codes.OTHER_KINDS, "document is" if len(others) == 1 else "documents are"
    message = (
        f"{len(others):,} {noun} of kinds that headroom does not read, and ignored: {abridged(kinds, _MOST_KINDS)}"
    )
    return (code.finding(message, others[0].position),)


def files_with_errors(findings: Iterable[Finding]) -> frozenset[str]:
    errors = (finding.position for finding in findings if finding.severity is Severity.ERROR)
    return frozenset(position.file for position in errors if position is not None)


def left_out(skipped: tuple[str, str]) -> Finding:
    """The finding about a file that was not read. skipped: its path, and why."""
    path, why = skipped
    hint = "name it in .sourceignore if headroom need not read it; else put files that can be read in its place"
    return codes.LEFT_OUT.finding(f"not read: {why}", SourcePosition(path, 1), hint=hint)


def read_live(objects: Iterable[LiveObject], cache: PassCache | None = None) -> Declared:
    """What the cluster's objects declare. One that cannot be read is left out, with a finding."""
    cache = cache or PassCache()
    cache.begin()
    slots: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    findings: list[Finding] = []
    for item in objects:
        kind = kind_of(item.ref.group, item.ref.kind)
        typed = None if kind is None else cache.once(item.ref, _typed, kind, item)
        if isinstance(typed, Finding):
            findings.append(typed)
        elif kind is not None and typed is not None:
            slots[kind.slot].append(typed)
    return Declared(**sorted_slots(slots), findings=tuple(findings))


def _typed(kind: Kind, item: LiveObject) -> Any:
    """The typed value, None for a partial NodePool, or a finding."""
    try:
        body = without_nulls(item.body)
        check_types(kind.schema, body)
        return kind.read(item.ref, body, Origin(managers=item.managers))
    except Invalid as error:
        message = f"the object in the cluster cannot be read: {error.message}"
        return codes.NOT_READ.finding(message, ref=item.ref, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - an object of an unknown form must not stop the pass
        return unreadable(error, None, item.ref)


def live_declared(view: ClusterView, cache: PassCache | None = None) -> Declared:
    """Everything that the cluster itself declares: its objects, and the view's workloads and priority classes."""
    live = read_live(view.objects.values(), cache)
    workloads = sorted((*live.workloads, *view.workloads), key=place_in_order)
    priorities = sorted((*live.priority_classes, *view.priority_classes), key=place_in_order)
    return replace(live, workloads=tuple(workloads), priority_classes=tuple(priorities))


def _slots(documents: Iterable[ReadDocument]) -> dict[str, Any]:
    slots: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    for document in documents:
        if document.kind is not None and document.typed is not None:
            slots[document.kind.slot].append(document.typed)
    return sorted_slots(slots)


def sorted_slots(slots: Mapping[str, list[Any]]) -> dict[str, Any]:
    return {slot: tuple(sorted(values, key=place_in_order)) for slot, values in slots.items()}
