"""Each example of the proposal is accepted, or gets a finding that says what to write, with file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reconciler.cli.application import application
from reconciler.manifests.repository.declared import read
from reconciler.model.findings import Severity

FILE = Path(__file__).resolve().parents[2] / "cases" / "budgets_of_the_proposal.yaml"
EXAMPLES: list[Mapping[str, Any]] = yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_an_example_of_the_proposal(example: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(example["document"])
    findings = read({"pool.yaml": example["document"].encode()}).findings
    assert {item.code for item in findings if item.severity is Severity.ERROR} == set(example["errors"])
    assert set(example["warnings"]) <= {item.code for item in findings}
    assert all(item.hint and item.position is not None and item.position.line > 0 for item in findings)

    words = ["budgets", "--repo", str(tmp_path), "--nodes", "20", "--output", "json"]
    done = CliRunner().invoke(application, words, catch_exceptions=False)
    document = json.loads(done.stdout)
    allowed = {row["reason"]: row["allowed"] for row in document["budgets"]}
    assert allowed == (example["allowed"] or {})
    assert set(example["errors"]) <= {item["code"] for item in document["findings"]}
