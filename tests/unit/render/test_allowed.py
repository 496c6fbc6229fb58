"""What a repository's template may write beside the plan: nothing by which its writer gets more than a manifest gives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.files import packaged_texts
from reconciler.model.errors import Invalid
from reconciler.model.nodes import node_claim_ref
from reconciler.render.allowed import check_node_claim, check_node_pool
from reconciler.render.check import representative_changes, representative_creations
from reconciler.render.templates import RenderProcess, TemplateSource
from reconciler.render.writes import node_claim_context, node_claim_document

CREATION, POOL = representative_creations()[0]


@pytest.fixture(scope="module")
def claim() -> dict[str, Any]:
    """As the packaged template writes it."""
    process = RenderProcess()
    templates = TemplateSource(packaged_texts("templates", suffix=".j2"), process=process).of({})
    try:
        return dict(node_claim_document(templates, CREATION, POOL))
    finally:
        process.close()


def put(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with one field; a step may be an index, and ~ stands for the slash of a name. None takes the field out."""
    copied = copy.deepcopy(document)
    found: Any = copied
    *steps, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
    for step in steps:
        found = found[step] if isinstance(step, int) else found.setdefault(step, {})
    if value is None:
        del found[last]
    else:
        found[last] = value
    return copied


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/name", "other"),
        ("metadata/finalizers", ["example.com/never"]),
        ("metadata/ownerReferences", None),
        ("metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]),
        ("metadata/labels/karpenter.sh~nodepool", "other"),
        ("metadata/labels/node-role.kubernetes.io~control-plane", "x"),
        ("metadata/annotations/karpenter.sh~nodepool-hash", "1"),
        ("spec/nodeClassRef", {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "admin"}),
        ("spec/nodeClassRef", None),
        ("spec/requirements", []),
        ("spec/requirements/0/values", ["arm64"]),
        ("spec/resources/requests/cpu", "64"),
        ("spec/taints", None),
        ("spec/unknown", 1),
        ("status", {"providerID": "aws:///i-1"}),
    ],
)
def test_what_a_node_claim_may_not_be(claim: dict[str, Any], path: str, value: object) -> None:
    with pytest.raises(Invalid):
        check_node_claim(node_claim_ref(CREATION.name), node_claim_context(CREATION, POOL), put(claim, path, value))


def test_a_node_claim_may_have_more_labels_requirements_and_taints(claim: dict[str, Any]) -> None:
    written = put(claim, "metadata/labels/team", "shop")
    written["spec"]["requirements"].insert(0, {"key": "example.com/rack", "operator": "Exists"})
    written["spec"]["taints"].append({"key": "example.com/new", "effect": "NoSchedule"})
    check_node_claim(node_claim_ref(CREATION.name), node_claim_context(CREATION, POOL), written)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "CapacityBuffer"),
        ("metadata/name", "other"),
        ("metadata/namespace", "shop"),
        ("metadata/finalizers", ["example.com/never"]),
        ("metadata/annotations/headroom.dev~ssa", "Override"),
        ("spec/template/spec/nodeClassRef/name", "admin"),
        ("spec/limits", None),
    ],
)
def test_what_a_node_pool_may_not_be(path: str, value: object) -> None:
    change = representative_changes()[0]
    declared = dict(change.manifest or {})
    check_node_pool(change.ref, declared, put(declared, "spec/template/metadata", {"labels": {"team": "shop"}}))
    with pytest.raises(Invalid):
        check_node_pool(change.ref, declared, put(declared, path, value))
