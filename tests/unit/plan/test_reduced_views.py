"""Plans against snapshots, whose objects lack what planning does not need."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reconciler.manifests.declared import read
from reconciler.model.declared import Declared
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.objects import prepared
from reconciler.plan.plan import PlanInputs, make_plan

TEMPLATE = (
    b"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\n"
    b"template: {spec: {containers: [{name: main, image: 'web:1', resources: {requests: {cpu: '1'}}}]}}\n"
)
REF = ObjectRef("", "PodTemplate", "shop", "web")


def changes(declared: Declared, body: Mapping[str, Any], *, reduced: bool) -> list[str]:
    view = ClusterView(objects={REF: LiveObject(REF, body)}, reduced=reduced)
    plan = make_plan(PlanInputs(None, datetime(2026, 11, 21, tzinfo=UTC), view, declared))
    return [field.path for change in plan.objects for field in change.changes]


def without_image(body: Mapping[str, Any]) -> dict[str, Any]:
    container = body["template"]["spec"]["containers"][0]
    short = {key: value for key, value in container.items() if key != "image"}
    return {**body, "template": {"spec": {"containers": [short]}}}


def test_what_a_snapshot_left_out_is_no_change() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], ""))
    assert changes(declared, body, reduced=True) == []
    assert changes(declared, body, reduced=False) == ["template.spec.containers[0].image"]


def test_an_edited_manifest_is_a_change_against_a_snapshot_too() -> None:
    declared = read({"a.yaml": TEMPLATE})
    body = without_image(prepared(declared.manifests[0], ""))
    edited = replace(declared, manifests=read({"a.yaml": TEMPLATE.replace(b"web:1", b"web:2")}).manifests)
    assert changes(edited, body, reduced=True) != []
