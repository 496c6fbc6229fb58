"""The definitions of headroom's own kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.manifests.crds import crds, why_left_out

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
