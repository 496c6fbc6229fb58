"""From the files of a tree to everything that they declare, with the last good version of what is broken.

From pass to pass, only what depends on a single file's path and content is kept. What depends on several files is computed each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests.documents.document import Document, unreadable
from reconciler.manifests.documents.load import load, load_file, without_nulls
from reconciler.manifests.documents.structure import check_types
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.repository.reading import ReadDocument, read_document
from reconciler.manifests.repository.validate import (
    duplicates,
    references,
    refused,
    refused_of_live,
    several_clusters,
)
from reconciler.model import codes
from reconciler.model.declared import SLOTS, Declared, in_order, ref_of
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef, SourcePosition, abridged
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView, LiveObject

_NAME = re.compile(rb"""\bname["']?\s*:\s*(?:&\S+\s+)?["']?([a-z0-9.-]+)""")


class KnownFiles:
    """The files of the tree that was read last, and of the one being read."""

    def __init__(self) -> None:
        self._files = PassCache()
        self._documents = PassCache()

    def begin(self) -> None:
        """Begins another tree. Files that are in neither this tree nor the last are dropped."""
        self._files.begin()
        self._documents.begin()

    def items(self, path: str, content: bytes) -> tuple[Document | Finding, ...]:
        """The same as `load_file`, from the cache where possible."""
        return self._files.once((path, content), _items, path, content)

    def document(self, document: Document) -> ReadDocument:
        """The same as `read_document`, from the cache where possible, which keeps the document alive, since its id is the key."""
        return self._documents.once(id(document), read_document, document)


def _items(path: str, content: bytes) -> tuple[Document | Finding, ...]:
    return tuple(load_file(path, content))


def with_last_good(current: Declared, previous: Declared | None) -> Declared:
    """What is in force: the current documents, and the last good version of those that cannot be read any more.

    A document cannot be read if it is broken, if it is missing from a file with an error, or if such a file mentions its name: it may
    have moved there. The findings are the current ones.
    """
    if previous is None or not (current.broken or current.broken_files):
        return current

    def is_kept(ref: ObjectRef, position: SourcePosition | None) -> bool:
        missing = position is not None and position.file in current.broken_files
        return missing or ref in current.broken or ref.name in current.named_in_broken

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
        slots[slot] = (*values, *kept)
    return replace(current, **in_order(slots), kept=frozenset(older))


def every_object(declared: Declared) -> Iterator[tuple[ObjectRef, Any]]:
    """Every object that the documents declare, typed or as a manifest, with its position."""
    for slot in SLOTS:
        yield from ((ref_of(value), value) for value in getattr(declared, slot))


def leaving_out(declared: Declared, findings: Iterable[Finding]) -> Declared:
    """The documents without those that these findings are about. They count as broken: what the cluster has of them stays."""
    found = tuple(findings)
    if not found:
        return declared
    refs = {finding.ref for finding in found if finding.ref is not None}
    return replace(declared.without(refs), findings=(*declared.findings, *found), broken=declared.broken | refs)


def without_refused(current: Declared, before: Declared, objects: Mapping[ObjectRef, LiveObject]) -> Declared:
    """The documents without edits that the API server will refuse once `before` is in the cluster. objects: what is there already."""
    known = {item.ref: item for item in before.manifests}
    found: list[Finding] = []
    for item in current.manifests:
        if item.ref in objects:
            found += refused_of_live(item, objects[item.ref], item.manifest)
        elif item.ref in known:
            found += refused(item, known[item.ref].manifest, item.manifest)
    return leaving_out(current, found)


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
    broken_files = files_with_errors(findings)
    mentions = [(name, path) for path in sorted(broken_files & files.keys()) for name in _NAME.findall(files[path])]
    return Declared(
        **_slots(sound),
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        broken_files=broken_files,
        named_in_broken={name.decode(): path for name, path in mentions},
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
    return Declared(**in_order(slots), findings=tuple(findings))


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
    seen = {"workloads": view.workloads, "priority_classes": view.priority_classes}
    return replace(live, **in_order({slot: (*getattr(live, slot), *values) for slot, values in seen.items()}))


def _slots(documents: Iterable[ReadDocument]) -> dict[str, Any]:
    slots: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    for document in documents:
        if document.kind is not None and document.typed is not None:
            slots[document.kind.slot].append(document.typed)
        if document.manifest is not None:
            slots["manifests"].append(document.manifest)
    return in_order(slots)
