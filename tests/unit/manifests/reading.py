"""Reads one YAML text as a repository of one file. Used by the tests of every kind."""

from __future__ import annotations

from reconciler.manifests.repository.declared import read
from reconciler.model.declared import Declared
from reconciler.model.findings import Finding


def declared(text: str) -> Declared:
    return read({"file.yaml": text.encode()})


def findings(text: str) -> list[Finding]:
    """Without the notes about what is not in the repository, which small examples never are."""
    return [finding for finding in declared(text).findings if finding.code != "not-in-repository"]


def codes_of(text: str) -> list[str]:
    return [finding.code for finding in findings(text)]


def only(text: str) -> Finding:
    (finding,) = findings(text)
    return finding
