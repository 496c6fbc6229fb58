"""One document, from plain values to what it declares: corrections, structure, rules, typed value; output of templates too.

A template may come from the repository, so its output is trusted no more than a manifest; `read_rendered` raises for an error in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from reconciler.manifests.annotations import check_annotations, check_beside_spec
from reconciler.manifests.documents.document import Document, Inspection, path_of, unreadable
from reconciler.manifests.documents.load import load, null_keys, schema_of, without_nulls
from reconciler.manifests.documents.structure import check_structure
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.node_pool import is_partial
from reconciler.manifests.repository.near_misses import finding_about_another
from reconciler.model import codes
from reconciler.model.declared import DeclaredManifest, Doubtful
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import node_claim_ref
from reconciler.model.refs import ObjectRef, Path, path_text
from reconciler.model.view import Manifest

_SERVER_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_BUFFER = "Buffer"


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """One document as read. kind: None if it is not one of headroom's. manifest: None if it is broken or only read. typed: None if
    it is broken or partial."""

    document: Document
    kind: Kind | None = None
    ref: ObjectRef | None = None
    typed: Any = None
    manifest: DeclaredManifest | None = None
    findings: tuple[Finding, ...] = ()
    broken: bool = False
    doubtful: Doubtful | None = None


def read_document(document: Document) -> ReadDocument:
    """What the document declares. Never raises: whatever is wrong becomes findings.

    Even a defect in a rule affects only one document and never stops a pass.
    """
    try:
        return _read(document)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is about this document
        kind = kind_of(document.api_version.rpartition("/")[0], document.kind)
        ref = None if kind is None else kind.ref_of(document.value)
        finding = unreadable(error, document.position, ref)
        return ReadDocument(document, kind, ref, findings=(finding,), broken=True)


def _read(document: Document) -> ReadDocument:
    api_version, api_path = _api_version(document)
    group, _, version = api_version.rpartition("/")
    name = document.kind
    kind = kind_of(group, name)
    if kind is None or (api_path != "apiVersion" and name != _BUFFER):
        finding = finding_about_another(document)
        findings = () if finding is None else (finding,)
        broken = finding is not None and finding.severity is Severity.ERROR
        return ReadDocument(document, ref=finding.ref if finding else None, findings=findings, broken=broken)
    body: dict[str, Any] = dict(without_nulls(document.value))
    inspection = Inspection(document, kind.ref_of(body), body)
    if body != document.value:
        inspection.nulls = _judged(null_keys(document.value))
    inspection.rename(("apiversion",), ("apiVersion",))
    if api_version not in map(kind.api_version, kind.versions):
        inspection.report(
            codes.UNKNOWN_VERSION,
            ("apiVersion",),
            f"{name} has no version {version or api_version!r} here",
            hint=f"write apiVersion: {kind.api_version(kind.versions[0])}",
        )
        return _broken(inspection, kind)
    _take_out_server_fields(inspection)
    for old, new in kind.renamed.items():
        inspection.rename(old, new)
    kind.correct(inspection)
    _check(inspection, kind)
    if inspection.failed:
        return _broken(inspection, kind)
    whole = deepcopy(inspection.body) if inspection.doubts else inspection.body
    inspection.drop_unknown()
    origin = Origin(document.position, inspection)
    try:
        typed = kind.read(inspection.ref, inspection.body, origin)
    except Invalid as error:
        inspection.report(codes.INVALID_VALUE, (), error.message, hint=error.hint)
        return _broken(inspection, kind)
    partial = typed is None and is_partial(inspection.body)
    manifest, doubtful = None, None
    if kind.applied:
        manifest = DeclaredManifest(inspection.ref, inspection.body, document.position, partial, inspection.place)
    if inspection.doubts:
        fuller = None if manifest is None else replace(manifest, manifest=whole)
        doubtful = Doubtful(inspection.ref, tuple(inspection.doubts), kind.slot, typed, fuller)
    return ReadDocument(document, kind, inspection.ref, typed, manifest, tuple(inspection.findings), doubtful=doubtful)


def _api_version(document: Document) -> tuple[str, str]:
    """The API version and its key, which the examples of the Buffers API proposal spell `apiversion`. For other kinds that is an error."""
    if "apiVersion" not in document.value:
        written = document.value.get("apiversion")
        if isinstance(written, str):
            return written, "apiversion"
    return document.api_version, "apiVersion"


def _take_out_server_fields(inspection: Inspection) -> None:
    """Removes fields that only the API server writes: applying them would conflict, or overwrite the observed state."""
    body = inspection.body
    paths: list[Path] = [("status",)] if "status" in body else []
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        paths += [("metadata", key) for key in metadata if key in _SERVER_METADATA]
        body["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVER_METADATA}
    for path in paths:
        inspection.report(
            codes.SERVER_FIELD, path, f"{path_text(path)} is set by the API server: ignored", hint="remove it"
        )
    body.pop("status", None)


def _judged(nulls: dict[Path, list[str]]) -> dict[Path, list[str]]:
    """Without the fields that only the API server writes: tools print them with null."""
    ignored: dict[Path, frozenset[str]] = {("metadata",): _SERVER_METADATA, (): frozenset({"status"})}
    return {path: [key for key in keys if key not in ignored.get(path, ())] for path, keys in nulls.items()}


def _check(inspection: Inspection, kind: Kind) -> None:
    body = inspection.body
    metadata = body.get("metadata", {})
    check_structure(inspection, "metadata", metadata, ("metadata",), schema_of(kind.schema)["properties"])
    is_sound = check_structure(inspection, kind.schema, body)
    if isinstance(metadata, Mapping):
        check_annotations(inspection, applied=kind.applied)
    if is_sound or kind.checks_anything:
        if isinstance(metadata, Mapping):
            check_beside_spec(inspection)
        kind.check(inspection)


def _broken(inspection: Inspection, kind: Kind) -> ReadDocument:
    findings = (*inspection.findings, *inspection.doubts)
    return ReadDocument(inspection.document, kind, inspection.ref, findings=findings, broken=True)


_LONGEST_SHOWN = 40
"""How many characters to quote if a template did not write a document."""


def read_rendered(name: str, text: str, declared: Manifest | None = None) -> Manifest:
    """The only document in `text`. name: what it is for. Raises `Invalid`, naming the line of the rendered text.

    declared: the document that was rendered. The cluster knows its fields, also those that the shipped schema does not have.
    """
    # The suffix matters, since the loader ignores other files.
    loaded = load({f"{name}.yaml": text.encode()})
    _refuse(name, loaded.findings)
    if not loaded.documents:
        shown = " ".join(text.split())
        wrote = f"{shown[:_LONGEST_SHOWN]!r}, which is not an object" if shown else "nothing"
        raise Invalid(f"the template for {name} wrote {wrote}", hint="it must write one document")
    if len(loaded.documents) != 1:
        raise Invalid(f"the template for {name} wrote {len(loaded.documents)} documents", hint="it must write one")
    document = loaded.documents[0]
    if document.kind == "NodeClaim":
        return _node_claim(name, document)
    read = read_document(document)
    _refuse(name, _findings_of(read, declared or {}))
    if read.manifest is None:
        raise Invalid(
            f"the template for {name} wrote {document.api_version} {document.kind}, which headroom does not apply",
            hint="keep apiVersion and kind as the packaged template has them",
        )
    whole = None if read.doubtful is None else read.doubtful.manifest
    return (whole or read.manifest).manifest


def _node_claim(name: str, document: Document) -> Manifest:
    body: dict[str, Any] = dict(document.value)
    claimed = str((body.get("metadata") or {}).get("name", ""))
    inspection = Inspection(document, node_claim_ref(claimed), body)
    check_structure(inspection, "node_claim", body)
    _refuse(name, (*inspection.findings, *inspection.doubts))
    return body


def _findings_of(read: ReadDocument, declared: Manifest) -> Iterable[Finding]:
    doubts = () if read.doubtful is None else read.doubtful.doubts
    return (*read.findings, *(doubt for doubt in doubts if not _has(declared, path_of(doubt.path))))


def _has(node: Any, path: Path) -> bool:
    for step in path:
        steps = range(len(node)) if isinstance(node, list) else node if isinstance(node, Mapping) else ()
        if step not in steps:
            return False
        node = node[step]
    return True


def _refuse(name: str, findings: Iterable[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        line = f", line {first.position.line}" if first.position else ""
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise Invalid(
            f"the template for {name} wrote what is not valid{line}: {first.message}{others}", hint=first.hint
        )
