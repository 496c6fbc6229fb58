"""Of a tree in which little changed little is read again, and the answer is the same."""

from __future__ import annotations

import pytest

from reconciler.manifests import declared
from reconciler.manifests.declared import KnownFiles, read
from reconciler.manifests.document import Document
from reconciler.manifests.reading import ReadDocument, read_document

TEMPLATE = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: NAME}\ntemplate: {spec: {containers: [{name: main}]}}\n"


def files(**names: str) -> dict[str, bytes]:
    return {f"{path}.yaml": TEMPLATE.replace("NAME", name).encode() for path, name in names.items()}


def test_only_what_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def counted(document: Document) -> ReadDocument:
        seen.append(document.file)
        return read_document(document)

    monkeypatch.setattr(declared, "read_document", counted)
    known = KnownFiles()
    read(files(a="one", b="two"), known=known)
    seen.clear()
    after = read(files(a="one", b="three", c="four"), known=known)
    assert seen == ["b.yaml", "c.yaml"]
    assert after == read(files(a="one", b="three", c="four"))


def test_findings_between_files_are_found_anew() -> None:
    known = KnownFiles()
    assert not read(files(a="one"), known=known).findings
    assert [item.code for item in read(files(a="one", b="one"), known=known).findings]
    assert not read(files(a="one"), known=known).findings
