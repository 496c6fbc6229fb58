"""Reads one YAML text as a repository of one file. Used by the tests of every kind."""

from __future__ import annotations

import pytest

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


def found(*rows: tuple[str, str, str, str, str]) -> pytest.MarkDecorator:
    """Examples of documents with one finding: a sentence, the text, the finding's code, its path, and words of its message or hint."""
    named = [pytest.param(*row, id=says) for says, *row in rows]
    return pytest.mark.parametrize(("text", "code", "path", "words"), named)


def check(text: str, code: str, path: str, words: str) -> None:
    """path, words: "" for any."""
    finding = only(text)
    assert (finding.code, path or finding.path) == (code, finding.path)
    assert words in f"{finding.message}; {finding.hint}"
