"""From files to documents: splitting, decoding, positions, and limits that no document gets around."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.manifests.documents import load as loading
from reconciler.manifests.documents.document import Document
from reconciler.manifests.documents.load import load, load_file
from reconciler.manifests.documents.tree import DEEPEST
from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import read
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model import codes
from reconciler.model.errors import Invalid
from reconciler.model.findings import LONGEST_TEXT, Code, Finding, Severity
from reconciler.model.quantity import parse_quantity
from reconciler.model.refs import SourcePosition, path_text


def read_text(text: str | bytes, path: str = "dir/file.yaml") -> tuple[list[Document], list[Finding]]:
    content = text.encode() if isinstance(text, str) else text
    items = list(load_file(path, content))
    return [item for item in items if isinstance(item, Document)], [item for item in items if isinstance(item, Finding)]


def only_finding(text: str | bytes, path: str = "dir/file.yaml") -> Finding:
    documents, findings = read_text(text, path)
    assert documents == []
    (finding,) = findings
    return finding


def test_positions_of_nodes_are_those_of_the_file() -> None:
    (_, second), _ = read_text("# first\na: 1\n---\n\nkind: X\nspec:\n  list:\n    - name: one\n    - name: two\n")
    assert second.position == SourcePosition("dir/file.yaml", 5, 1)
    assert second.position_of(("spec",)) == SourcePosition("dir/file.yaml", 6, 1)
    assert second.position_of(("spec", "list", 1)) == SourcePosition("dir/file.yaml", 9, 7)
    assert second.position_of(("spec", "list", 1, "name")) == SourcePosition("dir/file.yaml", 9, 7)
    assert second.position_of(("spec", "absent", "deeper")) == second.position_of(("spec",))


def test_an_alias_is_where_its_anchor_is() -> None:
    (document,), _ = read_text("base: &b\n  x: 1\nuse: *b\nmore:\n  <<: *b\n  z: 2\n")
    assert document.position_of(("use", "x")).line == 2
    assert document.position_of(("more", "x")).line == 2
    assert document.position_of(("more", "z")).line == 6


def test_empty_documents_and_comments_are_nothing() -> None:
    assert read_text("---\n---\n# only a comment\n---\n\n...\n") == ([], [])
    assert read_text("") == ([], [])


@pytest.mark.parametrize(
    "text",
    ["a: 1\r\n---\r\nb: 2\r\n", "\ufeffa: 1\n---\nb: 2\n", "a: 1\n--- # note\nb: 2\n"],
    ids=["CRLF", "byte order mark", "comment after the separator"],
)
def test_ways_to_write_two_documents(text: str) -> None:
    documents, findings = read_text(text)
    assert findings == []
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_a_document_may_begin_on_the_separators_line_and_end_with_dots() -> None:
    documents, _ = read_text("--- {a: 1}\n...\n--- {b: 2}\n")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_three_dashes_inside_a_block_are_text() -> None:
    (document,), _ = read_text("script: |\n  ---\n  x\n")
    assert document.value == {"script": "---\nx\n"}


def test_a_broken_document_spares_those_before_and_after_it() -> None:
    documents, (finding,) = read_text("a: 1\n---\nb: [1\n---\nc: 3\n")
    assert [document.value for document in documents] == [{"a": 1}, {"c": 3}]
    assert finding.code == codes.YAML_SYNTAX.name
    assert finding.position is not None
    assert finding.position.line in {3, 4}


TWICE = "'replicas' is given twice, on line "


@pytest.mark.parametrize(
    ("says", "text", "code", "place", "words"),
    [
        ("a tab", "a: 1\nb:\n\tc: 2\n", codes.YAML_SYNTAX, (3, 1), "a tab where only spaces may be; indent with spaces"),
        ("a tab after U+2028, which ends a line of YAML", "a:\u2028b:\u2028\tc: 2", codes.YAML_SYNTAX, None, ""),
        ("a key twice, with both lines", "kind: A\nspec:\n  replicas: 1\n  other: 2\n  replicas: 3\n",
         codes.DUPLICATE_KEY, (5, 3), TWICE + "3 and on line 5;"),
        ("a key twice in a line", "spec: {replicas: 1, replicas: 3}\n", codes.DUPLICATE_KEY, None, TWICE + "1;"),
        ("keys that are equal once they are text", "1: a\n'1': b\n", codes.DUPLICATE_KEY, None, ""),
        ("a template in a value", "kind: NodePool\nname: {{ .Values.name }}\n", codes.TEMPLATE_NOT_RENDERED, None, "renders"),
        ("a template around a line", "{{- if .Values.on }}\nkind: NodePool\n{{- end }}\n", codes.TEMPLATE_NOT_RENDERED,
         None, "renders"),
        ("a template in a key", "a: b\n  {{ c }}: d: e\n", codes.TEMPLATE_NOT_RENDERED, None, "renders"),
        ("bytes that are not UTF-8", b"a: 1\nb: \xff\n", codes.NOT_UTF8, (2, 1), ""),
        ("a conflict of Git", "a:\n  b: 1\n<<<<<<< HEAD\n  c: 2\n=======\n  c: 3\n>>>>>>> web\n", codes.YAML_SYNTAX, (3, 1),
         "Git left a merge conflict here; choose one side"),
        ("the end of a conflict", "b: 2\n>>>>>>> web\n", codes.YAML_SYNTAX, (2, 1), "merge conflict"),
        ("a control character", "a: 1\nb: \x01\n", codes.YAML_SYNTAX, (2, 1), ""),
        ("lists in lists beyond the limit", "a: " + "[" * DEEPEST + "]" * DEEPEST, codes.NESTED_TOO_DEEP, None, ""),
        ("lists in lists without end", "[" * 100_000, codes.NESTED_TOO_DEEP, None, ""),
        ("an alias to itself", "a: &a [*a]\n", codes.TOO_MANY_ALIASES, None, ""),
        ("an alias to nothing", "a: *b\n", codes.YAML_SYNTAX, None, "no anchor"),
        ("just text", "just text\n", codes.NOT_AN_OBJECT, None, ""),
        ("a list", "- a\n- b\n", codes.NOT_AN_OBJECT, None, ""),
        ("a number", "5\n", codes.NOT_AN_OBJECT, None, ""),
    ],
)  # fmt: skip
def test_what_is_not_read(says: str, text: str | bytes, code: Code, place: tuple[int, int] | None, words: str) -> None:
    finding = only_finding(text)
    assert finding.code == code.name, says
    assert place is None or finding.position == SourcePosition("dir/file.yaml", *place), says
    assert words in f"{finding.message}; {finding.hint}", says


def test_lists_in_lists_up_to_the_limit_are_read() -> None:
    assert read_text("a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2))[1] == []


def test_documents_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_DOCUMENTS_IN_A_FILE", 2)
    documents, (finding,) = read_text("a: 1\n---\nb: 2\n---\nc: 3\n")
    assert (len(documents), finding.code) == (2, codes.TOO_MANY_DOCUMENTS.name)
    monkeypatch.setattr(loading, "MOST_DOCUMENTS", 3)
    loaded = load({"a.yaml": b"a: 1\n---\nb: 2\n", "b.yaml": b"a: 1\n---\nb: 2\n"})
    assert len(loaded.documents) == 3


def test_json_files_have_positions_too() -> None:
    (document,), findings = read_text('{\n\t"kind": "X",\n\t"spec": {"a": [1, 2.0, true, null]}\n}\n', "x.json")
    assert findings == []
    assert document.value == {"kind": "X", "spec": {"a": [1, 2, True, None]}}
    assert document.position_of(("spec",)).line == 3


def test_the_items_of_a_list_are_documents_of_their_own() -> None:
    documents, (finding,) = read_text(
        "kind: List\napiVersion: v1\nitems:\n  - kind: A\n    name: a\n  - 5\n  - kind: B\n"
    )
    assert [document.kind for document in documents] == ["A", "B"]
    assert [document.position.line for document in documents] == [4, 7]
    assert documents[0].position_of(("name",)).line == 5
    assert finding.code == codes.WRONG_TYPE.name


def test_only_manifests_are_read_and_what_is_broken_is_told() -> None:
    files = {"b.yml": b"kind: B\n", "a.yaml": b"kind: A\n---\n[", "c.yaml.j2": b"{{", "d.txt": b"[", "e.json": b"{}"}
    loaded = load(files)
    assert [document.file for document in loaded.documents] == ["a.yaml", "b.yml", "e.json"]
    assert [finding.position.file for finding in loaded.findings if finding.position] == ["a.yaml"]


def test_paths_as_people_read_them() -> None:
    assert path_text(("spec", "budgets", 0, "nodes")) == "spec.budgets[0].nodes"
    assert path_text(("metadata", "labels", "a/b")) == "metadata.labels['a/b']"


NINES = "9" * 5000
FS = "f" * 5000
GOOD = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: good}\ntemplate: {spec: {containers: [{name: a}]}}\n"
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {%s}
"""
PRODUCER = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours}
spec: {schedule: {defaultReplicas: %s, behaviors: [{replicas: 1, start: {%s}, end: {hours: 17}}]}}
"""
BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, annotations: {note: %s}}
spec: {podTemplateRef: {name: good}, replicas: %s, limits: {cpu: %s}}
"""
TOTAL = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: total}
spec: {capacity: {nodeClass: {totalCpu: %s, totalMem: 1Gi}}}
"""


def findings_beside_a_good_document(text: str, path: str = "a.yaml") -> list[Finding]:
    """The errors and warnings; a document in another file, and one behind it in the same, must be read."""
    behind = GOOD.replace("good", "behind")
    content = f"{text}---\n{behind}" if path == "a.yaml" else text
    declared = read({path: content.encode(), "b.yaml": GOOD.encode()})
    names = {item.ref.name for item in declared.workloads}
    assert names == ({"good", "behind"} if path == "a.yaml" else {"good"})
    json.dumps([item.manifest for item in declared.manifests]).encode()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedule_findings(declared.schedules, now) == ()
    assert in_utc(declared, now).findings == ()
    return [item for item in declared.findings if item.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (BUFFER % (NINES, 1, 1), None, ""),
        (BUFFER % ("a", NINES, 1), "wrong-type", "spec.replicas"),
        (BUFFER % ("a", "0x" + FS, 1), "wrong-type", "spec.replicas"),
        (BUFFER % ("a", "0b" + "1" * 65, 1), "wrong-type", "spec.replicas"),
        (BUFFER % ("a", 2**64, 1), "invalid-value", "spec.replicas"),
        (BUFFER % ("a", 1, NINES), "invalid-value", ""),
        (BUFFER % ("a", 1, f"'{NINES}'"), "invalid-value", ""),
        (TOTAL % NINES, "invalid-value", "spec.capacity.nodeClass"),
        (TOTAL % f"'{NINES}'", "invalid-value", "spec.capacity.nodeClass"),
        (POOL % f"weight: {NINES}", "wrong-type", "spec.weight"),
        (POOL % f"disruption: {{budgets: [{{nodes: {NINES}}}]}}", "budget-not-evaluated", "spec.disruption.budgets[0].nodes"),
        (POOL % f"disruption: {{budgets: [{{nodes: '{NINES}'}}]}}", "budget-not-evaluated", "spec.disruption.budgets[0].nodes"),
        (POOL % f"disruption: {{budgets: [{{nodes: 0x{FS}}}]}}", "invalid-value", "spec.disruption.budgets[0].nodes"),
        (PRODUCER % (NINES, "hours: 9"), "wrong-type", "spec.schedule.defaultReplicas"),
        (PRODUCER % (1, f"hours: {NINES}"), "invalid-value", "spec.schedule.behaviors[0].start.hours"),
        (PRODUCER % (1, f"hours: '*/{NINES}'"), "invalid-value", "spec.schedule.behaviors[0].start.hours"),
        (PRODUCER % (1, f"hours: 0x{FS}"), "invalid-value", "spec.schedule.behaviors[0].start.hours"),
        (PRODUCER % (1, "weekdays: '" + "x," * 400_000 + "'"), "invalid-value", "spec.schedule.behaviors[0].start.weekdays"),
    ],
)  # fmt: skip
def test_a_number_without_bounds_is_about_its_own_document(text: str, code: str | None, path: str) -> None:
    found = findings_beside_a_good_document(text)
    assert {item.code for item in found} == ({code} if code is not None else set())
    assert all(item.path == path for item in found)
    assert all(len(item.message) <= LONGEST_TEXT + 1 for item in found)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    text = '{"apiVersion": "v1", "kind": "PodTemplate", "\\udfff\\ud83d\\ude00": 1}'
    assert [finding.code for finding in findings_beside_a_good_document(text, "a.json")] == ["yaml-syntax"]


def test_the_items_of_a_json_list_are_documents_of_their_own() -> None:
    items = [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}} for name in ("a", "b")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert read({"a.json": text.encode()}).documents == 2


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    lines = ["a0: &a0 " + "[" * 60 + "]" * 60]
    lines += [f"a{index}: &a{index} {'[' * 60}*a{index - 1}{']' * 60}" for index in range(1, 40)]
    (finding,) = read({"a.yaml": ("\n".join(lines) + "\n").encode()}).findings
    assert (finding.code, finding.position and finding.position.line) == ("nested-too-deep", 2)


def test_an_alias_may_nest_as_deep_as_the_limit() -> None:
    text = "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*a" + "]" * 30 + "\n"
    assert read({"a.yaml": text.encode()}).documents == 1


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 50_000 + "x: 10%\n---\ny: 1\n",
        "%a\n" + "\n" * 50_000 + "x:\n---\ny: 1\n",
        " \n#\n" * 50_000 + "%\nx:\n---\ny: 1\n",
        BUFFER.replace("note", "headroom.dev/lead-time") % ("'" + "1" * 500_000 + "'", 1, 1),
        POOL % ("disruption: {budgets: [{nodes: '1', schedule: '" + "* " * 300_000 + "', duration: 1h}]}"),
        POOL % ("limits: {cpu: '" + "1" * 500_000 + "x'}"),
        PRODUCER % (1, "weekdays: '" + "Mon-" * 100_000 + "'"),
        PRODUCER % (1, "weekdays: [" + "'Mox', " * 90_000 + "]"),
        POOL % "".join(f"templat{number}: 1, " for number in range(60_000)),
    ],
    ids=range(9),
)
def test_no_text_takes_long(text: str) -> None:
    """In a process of its own, since a pattern that backtracks holds up everything, this test included."""
    program = "import sys; from reconciler.manifests.repository.declared import read; print(read({'a.yaml': sys.stdin.buffer.read()}).documents)"
    done = subprocess.run(
        [sys.executable, "-c", program], input=text.encode(), capture_output=True, timeout=60, check=True
    )
    assert done.stdout.strip() in {b"0", b"1", b"2"}, done.stderr


@pytest.mark.parametrize("quantity", [NINES, f"{NINES}m", f"0.{NINES}", "." + "0" * 5000 + "1"])
def test_a_quantity_has_no_more_than_a_hundred_characters(quantity: str) -> None:
    with pytest.raises(Invalid, match="is not a quantity"):
        parse_quantity(quantity)


def test_a_quantity_is_capped_as_apimachinery_caps_it() -> None:
    assert parse_quantity("1e999") == parse_quantity("100E") == 2**63 - 1
    assert parse_quantity("-1e999") == 1 - 2**63


def test_a_defect_of_a_rule_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any, **_options: Any) -> None:
        raise ZeroDivisionError("a rule divided by zero")

    monkeypatch.setattr("reconciler.manifests.repository.reading.check_annotations", broken)
    declared = read({"a.yaml": (BUFFER % ("a", 1, 1)).encode(), "b.yaml": b"x: 1\n"})
    (finding,) = (item for item in declared.findings if item.code == "not-read")
    assert finding.message == "headroom failed to read this document (ZeroDivisionError): a rule divided by zero"
    assert str(finding.ref) == "CapacityBuffer/default/web"
    assert finding.ref in declared.broken
