"""The definitions of headroom's own kinds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from reconciler.manifests.crds import SCHEMA_FILE, crds, editor_line, editor_schema, editor_schema_text, why_left_out

FORBIDDEN = {"$ref", "definitions", "uniqueItems", "patternProperties", "deprecated", "additionalItems", "id"}
"""What a structural schema of apiextensions.k8s.io/v1 must not have."""


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key])


def test_the_kinds_that_headroom_owns() -> None:
    assert [(crd["metadata"]["name"], crd["spec"]["scope"]) for crd in crds()] == [
        ("buffers.autoscaling.x-k8s.io", "Namespaced"),
        ("metricsproducers.autoscaling.karpenter.sh", "Namespaced"),
        ("provisioningclasses.autoscaling.x-k8s.io", "Cluster"),
        ("provisioningrequests.autoscaling.x-k8s.io", "Namespaced"),
    ]
    for crd in crds():
        versions = crd["spec"]["versions"]
        assert [version["storage"] for version in versions] == [True, *[False] * (len(versions) - 1)]
        for version in versions:
            has_status = "status" in version["schema"]["openAPIV3Schema"]["properties"]
            assert ("status" in version.get("subresources", {})) == has_status


def test_requests_are_served_in_both_versions_of_cluster_autoscaler() -> None:
    (crd,) = crds(["ProvisioningRequest"])
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1", "v1beta1"]


def test_schemas_are_structural() -> None:
    for crd in crds():
        for schema in schemas(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
            assert not FORBIDDEN & schema.keys()
            open_value = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
            assert isinstance(schema.get("type"), str) or open_value, schema
            assert not ("properties" in schema and "additionalProperties" in schema)


def test_a_definition_of_somebody_else_or_a_newer_one_is_not_to_be_replaced() -> None:
    (ours,) = crds(["ProvisioningRequest"])
    assert why_left_out(ours, None) == ""
    assert why_left_out(ours, ours) == ""
    theirs = {**ours, "metadata": {"name": ours["metadata"]["name"]}}
    assert why_left_out(ours, theirs) == "the cluster has one that is not headroom's"
    newer = {**ours, "spec": {"versions": [{"name": "v2"}, *ours["spec"]["versions"]]}}
    assert why_left_out(ours, newer) == "the cluster has a newer one, with version v2"


# The schema for editors accepts what headroom accepts, and marks what a person would want marked.

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
