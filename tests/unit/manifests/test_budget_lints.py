"""What headroom says of budgets that do not do what they seem to, case by case; and the design's own examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.manifests.declared import read
from reconciler.model.findings import Finding, Severity

CASES = Path(__file__).parents[2] / "cases"
TEMPLATE = {
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
    },
}


def load(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.load((CASES / name).read_bytes(), Loader=yaml.CSafeLoader)
    return loaded


LINTS = load("budget_lints.yaml")
SEED = load("budget_examples.yaml")


def label(case: dict[str, Any]) -> str:
    return str(case["name"])


def findings_of(case: dict[str, Any]) -> tuple[Finding, ...]:
    spec: dict[str, Any] = {"template": TEMPLATE}
    if "budgets" in case:
        budgets = case["budgets"]
        many = [{"nodes": str(number)} for number in range(budgets)] if isinstance(budgets, int) else budgets
        spec["disruption"] = {"consolidateAfter": "1m", "budgets": many}
    metadata = {"name": "general", "annotations": case.get("annotations", {})}
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}
    return read({"pools.json": json.dumps(body).encode()}).findings


def place(finding: Finding) -> str:
    path = finding.path.removeprefix("spec.disruption.")
    return f"{finding.code} at {path.partition('[')[0] if path.startswith('metadata') else path}"


@pytest.mark.parametrize("case", LINTS, ids=label)
def test_what_is_said_of_budgets(case: dict[str, Any]) -> None:
    found = findings_of(case)
    assert [place(finding) for finding in found] == case["findings"]
    for finding in found:
        assert case.get("message", "") in finding.message
        assert case.get("hint", "") in finding.hint


@pytest.mark.parametrize("case", [case for case in LINTS if "good" in case], ids=label)
def test_nothing_is_said_of_what_was_meant(case: dict[str, Any]) -> None:
    assert findings_of(case["good"]) == ()


@pytest.mark.parametrize("case", SEED, ids=label)
def test_the_examples_of_the_proposal_are_read_or_told(case: dict[str, Any]) -> None:
    declared = read({"example.yaml": case["document"].encode()})
    assert [f"{finding.code} at {finding.path}" for finding in declared.findings] == case["findings"]
    is_accepted = not any(finding.severity is Severity.ERROR for finding in declared.findings)
    assert [item.manifest["spec"] for item in declared.manifests] == ([case["applied"]] if is_accepted else [])
