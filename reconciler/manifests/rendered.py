"""Reads the output of a template: one document, validated like any other.

A template may come from the repository, so its output is trusted no more than a manifest. Here a finding that is an error raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.manifests.document import Document, Path, path_of
from reconciler.manifests.inspection import Inspection
from reconciler.manifests.load import load
from reconciler.manifests.reading import ReadDocument, read_document
from reconciler.manifests.structure import check_structure
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

_NODE_CLAIM = "NodeClaim"
_DEPLOYMENT = "Deployment"
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
        found = " ".join(text.split())
        wrote = f"{found[:_LONGEST_SHOWN]!r}, which is not an object" if found else "nothing"
        raise Invalid(f"the template for {name} wrote {wrote}", hint="it must write one document")
    if len(loaded.documents) != 1:
        raise Invalid(f"the template for {name} wrote {len(loaded.documents)} documents", hint="it must write one")
    document = loaded.documents[0]
    if document.kind == _NODE_CLAIM:
        return _node_claim(name, document)
    if document.kind == _DEPLOYMENT:
        return _deployment(name, document)
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
    inspection = Inspection(document, ObjectRef("karpenter.sh", _NODE_CLAIM, "", claimed), body)
    check_structure(inspection, "node_claim", body)
    _refuse(name, (*inspection.findings, *inspection.doubts))
    return body


def _deployment(name: str, document: Document) -> Manifest:
    """The Deployment of balloon pods, the only one that headroom applies. It is read as a workload to find its errors."""
    _refuse(name, _findings_of(read_document(document), {}))
    return dict(document.value)


def _findings_of(read: ReadDocument, declared: Manifest) -> Iterable[Finding]:
    doubts = () if read.doubtful is None else read.doubtful.doubts
    return (*read.findings, *(doubt for doubt in doubts if not _has(declared, path_of(doubt.path))))


def _has(node: Any, path: Path) -> bool:
    for step in path:
        known = range(len(node)) if isinstance(node, list) else node if isinstance(node, Mapping) else ()
        if step not in known:
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
