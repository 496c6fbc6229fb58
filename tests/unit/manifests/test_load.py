"""Files become documents, each by itself: what cannot be read takes none of its neighbours with it."""

from __future__ import annotations

import pytest

from reconciler.manifests import codes
from reconciler.manifests import load as loading
from reconciler.manifests.document import Document, path_text
from reconciler.manifests.load import load, load_file
from reconciler.manifests.tree import DEEPEST
from reconciler.model.findings import Finding
from reconciler.model.refs import SourcePosition


def read(text: str | bytes, path: str = "dir/file.yaml") -> tuple[list[Document], list[Finding]]:
    content = text.encode() if isinstance(text, str) else text
    items = list(load_file(path, content))
    return [item for item in items if isinstance(item, Document)], [item for item in items if isinstance(item, Finding)]


def only_finding(text: str | bytes, path: str = "dir/file.yaml") -> Finding:
    documents, findings = read(text, path)
    assert documents == []
    (finding,) = findings
    return finding


def test_positions_of_nodes_are_those_of_the_file() -> None:
    (_, second), _ = read("# first\na: 1\n---\n\nkind: X\nspec:\n  list:\n    - name: one\n    - name: two\n")
    assert second.position == SourcePosition("dir/file.yaml", 5, 1)
    assert second.position_of(("spec",)) == SourcePosition("dir/file.yaml", 6, 1)
    assert second.position_of(("spec", "list", 1)) == SourcePosition("dir/file.yaml", 9, 7)
    assert second.position_of(("spec", "list", 1, "name")) == SourcePosition("dir/file.yaml", 9, 7)
    assert second.position_of(("spec", "absent", "deeper")) == second.position_of(("spec",))


def test_an_alias_is_where_its_anchor_is() -> None:
    (document,), _ = read("base: &b\n  x: 1\nuse: *b\nmore:\n  <<: *b\n  z: 2\n")
    assert document.position_of(("use", "x")).line == 2
    assert document.position_of(("more", "x")).line == 2
    assert document.position_of(("more", "z")).line == 6


def test_empty_documents_and_comments_are_nothing() -> None:
    assert read("---\n---\n# only a comment\n---\n\n...\n") == ([], [])
    assert read("") == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\r\n---\r\nb: 2\r\n",
        "\ufeffa: 1\n---\nb: 2\n",
        "a: 1\n--- # note\nb: 2\n",
        "%YAML 1.2\n---\na: 1\n---\nb: 2\n",
    ],
    ids=["CRLF", "byte order mark", "comment after the separator", "directive"],
)
def test_ways_to_write_two_documents(text: str) -> None:
    documents, findings = read(text)
    assert findings == []
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_a_document_may_begin_on_the_separators_line_and_end_with_dots() -> None:
    documents, _ = read("--- {a: 1}\n...\n--- {b: 2}\n")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_three_dashes_inside_a_block_are_text() -> None:
    (document,), _ = read("script: |\n  ---\n  x\n")
    assert document.value == {"script": "---\nx\n"}


def test_a_broken_document_spares_those_before_and_after_it() -> None:
    documents, (finding,) = read("a: 1\n---\nb: [1\n---\nc: 3\n")
    assert [document.value for document in documents] == [{"a": 1}, {"c": 3}]
    assert finding.code == codes.YAML_SYNTAX.name
    assert finding.position is not None
    assert finding.position.line in {3, 4}


def test_a_tab_is_told_with_its_line() -> None:
    finding = only_finding("a: 1\nb:\n\tc: 2\n")
    assert (finding.code, finding.position) == (codes.YAML_SYNTAX.name, SourcePosition("dir/file.yaml", 3, 1))
    assert (finding.message, finding.hint) == ("a tab where only spaces may be", "indent with spaces")
    # YAML takes U+2028 for the end of a line.
    assert only_finding("a:\u2028b:\u2028\tc: 2").code == codes.YAML_SYNTAX.name


def test_a_duplicate_key_is_told_with_both_lines() -> None:
    finding = only_finding("kind: A\nspec:\n  replicas: 1\n  other: 2\n  replicas: 3\n")
    assert finding.code == codes.DUPLICATE_KEY.name
    assert finding.message == "'replicas' is given twice, on line 3 and on line 5"
    assert finding.position == SourcePosition("dir/file.yaml", 5, 3)
    assert only_finding("spec: {replicas: 1, replicas: 3}\n").message == "'replicas' is given twice, on line 1"


def test_keys_that_are_equal_once_they_are_text_are_duplicates() -> None:
    assert only_finding("1: a\n'1': b\n").code == codes.DUPLICATE_KEY.name


@pytest.mark.parametrize(
    "text",
    [
        "kind: NodePool\nname: {{ .Values.name }}\n",
        "{{- if .Values.on }}\nkind: NodePool\n{{- end }}\n",
        "a: b\n  {{ c }}: d: e\n",
    ],
)
def test_templates_are_told_from_mere_mistakes(text: str) -> None:
    finding = only_finding(text)
    assert finding.code == codes.TEMPLATE_NOT_RENDERED.name
    assert "renders" in finding.hint


def test_bytes_that_are_not_utf8() -> None:
    finding = only_finding(b"a: 1\nb: \xff\n")
    assert (finding.code, finding.position) == (codes.NOT_UTF8.name, SourcePosition("dir/file.yaml", 2))


def test_control_characters_are_told_with_their_line() -> None:
    finding = only_finding("a: 1\nb: \x01\n")
    assert (finding.code, finding.position) == (codes.YAML_SYNTAX.name, SourcePosition("dir/file.yaml", 2))


def test_nesting_has_a_limit() -> None:
    assert read("a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2))[1] == []
    assert only_finding("a: " + "[" * DEEPEST + "]" * DEEPEST).code == codes.NESTED_TOO_DEEP.name
    assert only_finding("[" * 100_000).code == codes.NESTED_TOO_DEEP.name


def test_a_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 10) + "]" for level in range(1, 10)]
    assert only_finding("\n".join(lines)).code == codes.TOO_MANY_ALIASES.name


def test_an_alias_to_itself_and_one_to_nothing() -> None:
    assert only_finding("a: &a [*a]\n").code == codes.TOO_MANY_ALIASES.name
    assert "no anchor" in only_finding("a: *b\n").message


def test_a_file_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LARGEST_FILE", 10)
    assert only_finding("a: 1234567890\n").code == codes.FILE_TOO_LARGE.name


def test_documents_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_DOCUMENTS_IN_A_FILE", 2)
    documents, (finding,) = read("a: 1\n---\nb: 2\n---\nc: 3\n")
    assert (len(documents), finding.code) == (2, codes.TOO_MANY_DOCUMENTS.name)
    monkeypatch.setattr(loading, "MOST_DOCUMENTS", 3)
    loaded = load({"a.yaml": b"a: 1\n---\nb: 2\n", "b.yaml": b"a: 1\n---\nb: 2\n"})
    assert len(loaded.documents) == 3
    assert loaded.broken_files == {"b.yaml"}


def test_json_files_have_positions_too() -> None:
    (document,), findings = read('{\n\t"kind": "X",\n\t"spec": {"a": [1, 2.0, true, null]}\n}\n', "x.json")
    assert findings == []
    assert document.value == {"kind": "X", "spec": {"a": [1, 2, True, None]}}
    assert document.position_of(("spec",)).line == 3


def test_json_that_only_json_can_read() -> None:
    (document,), _ = read('{"note": "\\ud83d\\ude00"}', "x.json")
    assert document.value == {"note": "\N{GRINNING FACE}"}


def test_the_items_of_a_list_are_documents_of_their_own() -> None:
    documents, (finding,) = read(
        "kind: List\napiVersion: v1\nitems:\n  - kind: A\n    name: a\n  - 5\n  - kind: B\n",
    )
    assert [document.kind for document in documents] == ["A", "B"]
    assert [document.position.line for document in documents] == [4, 7]
    assert documents[0].position_of(("name",)).line == 5
    assert finding.code == codes.WRONG_TYPE.name


def test_text_and_lists_are_no_objects() -> None:
    for text in ("just text\n", "- a\n- b\n", "5\n"):
        assert only_finding(text).code == codes.NOT_AN_OBJECT.name


def test_only_manifests_are_read_and_broken_files_are_named() -> None:
    files = {"b.yml": b"kind: B\n", "a.yaml": b"kind: A\n---\n[", "c.yaml.j2": b"{{", "d.txt": b"[", "e.json": b"{}"}
    loaded = load(files)
    assert [document.file for document in loaded.documents] == ["a.yaml", "b.yml", "e.json"]
    assert loaded.broken_files == {"a.yaml"}


def test_paths_as_people_read_them() -> None:
    assert path_text(("spec", "budgets", 0, "nodes")) == "spec.budgets[0].nodes"
    assert path_text(("metadata", "labels", "a/b")) == "metadata.labels['a/b']"
