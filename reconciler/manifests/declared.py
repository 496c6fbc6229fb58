"""Everything that a repository or a cluster declares: the package's entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.inspection import unreadable
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.known_files import KnownFiles
from reconciler.manifests.last_good import SLOTS, place_in_order
from reconciler.manifests.load import load
from reconciler.manifests.reading import ReadDocument
from reconciler.manifests.schema import without_nulls
from reconciler.manifests.structure import check_types
from reconciler.manifests.validate import duplicates, references, several_clusters
from reconciler.model.declared import Declared
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.pass_memory import PassMemory
from reconciler.model.refs import SourcePosition, abridged
from reconciler.model.view import ClusterView, LiveObject

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
            ),
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
    return (Finding(code.name, code.severity, message, others[0].position),)


def files_with_errors(findings: Iterable[Finding]) -> frozenset[str]:
    errors = (finding.position for finding in findings if finding.severity is Severity.ERROR)
    return frozenset(position.file for position in errors if position is not None)


def left_out(skipped: tuple[str, str]) -> Finding:
    """The finding about a file that was not read. skipped: its path, and why."""
    path, why = skipped
    code = codes.LEFT_OUT
    return Finding(code.name, code.severity, f"not read: {why}", SourcePosition(path, 1))


def read_live(objects: Iterable[LiveObject], memory: PassMemory | None = None) -> Declared:
    """What the cluster's objects declare. One that cannot be read is left out, with a finding."""
    memory = memory or PassMemory()
    memory.begin()
    slots: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    findings: list[Finding] = []
    for item in objects:
        kind = kind_of(item.ref.group, item.ref.kind)
        typed = None if kind is None else memory.once(item.ref, _typed, kind, item)
        if isinstance(typed, Finding):
            findings.append(typed)
        elif kind is not None and typed is not None:
            slots[kind.slot].append(typed)
    return Declared(**sorted_slots(slots), findings=tuple(findings))


def _typed(kind: Kind, item: LiveObject) -> Any:
    """The typed value, None for a partial NodePool, or a finding."""
    try:
        body = without_nulls(item.body)
        if kind.schema is not None:
            check_types(kind.schema, body)
        return kind.read(item.ref, body, Origin(managers=item.managers))
    except Invalid as error:
        code = codes.NOT_READ
        message = f"the object in the cluster cannot be read: {error.message}"
        return Finding(code.name, code.severity, message, ref=item.ref, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - an object of an unknown form must not stop the pass
        return unreadable(error, None, item.ref)


def live_declared(view: ClusterView, memory: PassMemory | None = None) -> Declared:
    """Everything that the cluster itself declares: its objects, and the view's workloads and priority classes."""
    live = read_live(view.objects.values(), memory)
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
