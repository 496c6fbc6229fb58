"""The schema for editors accepts what headroom accepts, and marks what a person would want marked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from reconciler.manifests.crds import SCHEMA_FILE, editor_line, editor_schema, editor_schema_text

ROOT = Path(__file__).resolve().parents[3]
VALIDATOR = jsonschema_rs.Draft7Validator(editor_schema())
EXAMPLES = sorted((ROOT / "examples-repo" / "clusters").rglob("*.yaml"))
PAGES = sorted(page for page in (ROOT / "docs" / "manifests").glob("*.md"))


def documents(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


def wrong(document: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(document)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_right(path: Path) -> None:
    for document in documents(path.read_text()):
        assert wrong(document) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_documentation_shows_is_right(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        for document in documents(block):
            if isinstance(document, dict) and "apiVersion" in document:
                assert wrong(document) == []


def buffer(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "web"},
        "spec": {"podTemplateRef": {"name": "web"}, "replicas": 3} | spec,
    }


@pytest.mark.parametrize(
    "document", [buffer(replicas="3"), buffer(replica=3), {**buffer(), "metadata": {"name": "Web"}}, {"kind": "x"}]
)
def test_mistakes_are_marked(document: Any) -> None:
    assert wrong(buffer()) == []
    assert wrong(document) != []


def test_other_kinds_may_be_anything() -> None:
    assert wrong({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}) == []


def test_the_line_leads_from_a_clusters_folder_to_the_schema() -> None:
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)\n", editor_line(2))
    assert found is not None
    assert (Path("/r/clusters/production") / found[1]).resolve() == Path("/r") / SCHEMA_FILE


def test_the_example_repository_has_the_schema_that_init_writes() -> None:
    """Renew with HEADROOM_GOLDEN=write."""
    file = ROOT / "examples-repo" / SCHEMA_FILE
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        file.write_text(editor_schema_text())
    assert file.read_text() == editor_schema_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_example_leads_to_it(path: Path) -> None:
    line = path.read_text().partition("\n")[0]
    assert (path.parent / line.removeprefix("# yaml-language-server: $schema=")).resolve() == (
        ROOT / "examples-repo" / SCHEMA_FILE
    )
