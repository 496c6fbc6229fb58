"""What was changed in the cluster since it was applied: put back, left to a controller, or only told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.changes import ObjectChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.objects.drift import Drift
from reconciler.plan.objects.objects import ObjectPlan, object_changes, prepared
from tests.unit.plan.worlds import OWNER

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")


def pool(weight: int = 50, **annotations: str) -> DeclaredManifest:
    metadata = {"name": "general", "annotations": {f"headroom.dev/{key}": value for key, value in annotations.items()}}
    spec = {"weight": weight, "replicas": 3, "template": {"spec": {}}}
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}
    return DeclaredManifest(POOL, body, SourcePosition("pools.yaml", 4))


def changed(item: DeclaredManifest, by: str, **spec: Any) -> LiveObject:
    """The object as it was applied, with fields that a manager has changed since."""
    body = prepared(item, OWNER)
    owned = frozenset(f"spec.{name}" for name in spec)
    managers = {"headroom": frozenset({"spec.template", "spec.weight", "spec.replicas"}) - owned, by: owned}
    return LiveObject(POOL, body | {"spec": body["spec"] | spec}, managers=managers)


def planned(item: DeclaredManifest, live: LiveObject, drift: Drift = Drift.CORRECT) -> ObjectPlan:
    return object_changes(Declared(manifests=(item,)), ClusterView(objects={POOL: live}), OWNER, drift)


def only_change(plan: ObjectPlan) -> ObjectChange:
    (change,) = plan.changes
    return change


@pytest.mark.parametrize("manager", ["kubectl-edit", "kubectl-patch", "kubectl"])
def test_what_a_person_changed_is_taken_back(manager: str) -> None:
    change = only_change(planned(pool(), changed(pool(), manager, weight=10)))
    assert change.force
    assert change.reason == "changed in the cluster since it was applied from pools.yaml"


def test_a_field_that_a_controller_took_is_not_fought_over() -> None:
    assert not only_change(planned(pool(), changed(pool(), "weight-controller", weight=10))).force


def test_replicas_belong_to_whoever_scales() -> None:
    assert not only_change(planned(pool(), changed(pool(), "kubectl", replicas=9))).force


def test_a_new_manifest_takes_nothing_over() -> None:
    """A conflict over what was never applied is somebody's to settle."""
    change = only_change(planned(pool(weight=60), changed(pool(), "kubectl-edit", weight=10)))
    assert not change.force
    assert change.reason == "differs from pools.yaml"


@pytest.mark.parametrize("by_annotation", [True, False])
def test_drift_is_told_and_left_where_that_is_the_policy(by_annotation: bool) -> None:  # noqa: FBT001 - the case
    item = pool(drift="report") if by_annotation else pool()
    plan = planned(item, changed(item, "kubectl-edit", weight=10), Drift.CORRECT if by_annotation else Drift.REPORT)
    assert plan.changes == ()
    (finding,) = plan.findings
    assert finding.code == "drifted"
    assert finding.path == "spec.weight"
    assert finding.message == (
        "was changed in the cluster by kubectl-edit since it was applied: spec.weight is 10, not 50"
    )


def test_the_annotation_goes_before_the_setting() -> None:
    item = pool(drift="correct")
    assert planned(item, changed(item, "kubectl-edit", weight=10), Drift.REPORT).changes


def test_a_change_in_git_is_applied_whatever_the_policy() -> None:
    live = changed(pool(), "kubectl-edit", weight=10)
    assert planned(pool(weight=60), replace(live), Drift.REPORT).changes
