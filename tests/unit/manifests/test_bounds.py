"""Numbers, texts and nesting beyond all bounds become findings of their own document; the others are read as usual."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.manifests.declared import read
from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.errors import Invalid
from reconciler.model.findings import LONGEST_TEXT, Finding, Severity
from reconciler.model.quantity import parse_quantity

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
    text = json.dumps({"apiVersion": "v1", "kind": "List", "note": "\U0001f600", "items": items})
    assert "\\ud83d" in text
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
    program = "import sys; from reconciler.manifests.declared import read; print(read({'a.yaml': sys.stdin.buffer.read()}).documents)"
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

    monkeypatch.setattr("reconciler.manifests.reading.check_annotations", broken)
    declared = read({"a.yaml": (BUFFER % ("a", 1, 1)).encode(), "b.yaml": b"x: 1\n"})
    (finding,) = (item for item in declared.findings if item.code == "not-read")
    assert finding.message == "headroom failed to read this document (ZeroDivisionError): a rule divided by zero"
    assert str(finding.ref) == "CapacityBuffer/default/web"
    assert finding.ref in declared.broken
