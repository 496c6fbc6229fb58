"""Plans against snapshots, whose objects lack what planning does not need."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.manifests.repository.declared import read
from reconciler.model.declared import Declared
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.facts import Facts
from reconciler.plan.objects.objects import Owner, prepared
from reconciler.plan.plan import make_plan

TEMPLATE = (
    b"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\n"
    b"template: {spec: {containers: [{name: main, image: 'web:1', resources: {requests: {cpu: '1'}}}]}}\n"
)
PARTIAL = b"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: live}\nspec: {weight: 5}\n"
POOL = ObjectRef("karpenter.sh", "NodePool", "", "live")
REF = ObjectRef("", "PodTemplate", "shop", "web")


def changes(declared: Declared, body: Mapping[str, Any], *, reduced: bool, ref: ObjectRef = REF) -> list[str]:
    view = ClusterView(objects={ref: LiveObject(ref, body)}, reduced=reduced)
    plan = make_plan(Facts(datetime(2026, 11, 21, tzinfo=UTC), view=view, repository=declared))
    return [field.path for change in plan.objects for field in change.changes]


def without_image(body: Mapping[str, Any]) -> dict[str, Any]:
    container = body["template"]["spec"]["containers"][0]
    short = {key: value for key, value in container.items() if key != "image"}
    return {**body, "template": {"spec": {"containers": [short]}}}


def test_what_a_snapshot_left_out_is_no_change() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], Owner()))
    assert changes(declared, body, reduced=True) == []
    assert changes(declared, body, reduced=False) == ["template.spec.containers[0].image"]


def test_an_edited_manifest_is_a_change_against_a_snapshot_too() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], Owner()))
    edited = replace(declared, manifests=read({"a.yaml": TEMPLATE.replace(b"web:1", b"web:2")}).manifests)
    assert changes(edited, body, reduced=True) != []


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("annotations", [None, {}, {"team": "a"}])
def test_what_was_never_applied_here_is_a_change_whatever_annotations_it_has(
    annotations: dict[str, str] | None, *, reduced: bool
) -> None:
    """Of a NodePool that somebody else made a manifest sets a field that it does not have."""
    declared = read({"a.yaml": PARTIAL})
    metadata = {"name": "live"} if annotations is None else {"name": "live", "annotations": annotations}
    assert "spec.weight" in changes(declared, {"metadata": metadata, "spec": {}}, ref=POOL, reduced=reduced)


@pytest.mark.parametrize("annotations", [None, {}, {"team": "a"}])
def test_so_it_is_for_every_kind(annotations: dict[str, str] | None) -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = prepared(declared.manifests[0], Owner())
    metadata = {"name": "web", "namespace": "shop"} | ({} if annotations is None else {"annotations": annotations})
    assert "template" in changes(declared, {"apiVersion": body["apiVersion"], "metadata": metadata}, reduced=True)
