"""Which declared objects are created and updated, which are left as they are, and what becomes of drift."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.changes import Action, Drift, FieldChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.objects.objects import ObjectPlan, object_changes, prepared
from tests.unit.plan.worlds import APPLYSET, OWNER, live

# Which declared objects are created and updated, and which are left as they are.

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")
BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
TEMPLATE = ObjectRef("", "PodTemplate", "shop", "small")
HASH = "metadata.annotations['headroom.dev/applied-hash']"


def document(
    ref: ObjectRef = BUFFER,
    spec: dict[str, Any] | None = None,
    *,
    file: str = "web.yaml",
    partial: bool = False,
    **annotations: str,
) -> DeclaredManifest:
    metadata: dict[str, Any] = {"name": ref.name}
    if annotations:
        metadata["annotations"] = {f"headroom.dev/{key}": value for key, value in annotations.items()}
    body = {
        "apiVersion": "v1",
        "kind": ref.kind,
        "metadata": metadata,
        "spec": {"replicas": 3} if spec is None else spec,
    }
    return DeclaredManifest(ref, body, SourcePosition(file, 1), partial)


def planned(*items: DeclaredManifest, objects: tuple[LiveObject, ...] = ()) -> ObjectPlan:
    view = ClusterView(objects={item.ref: item for item in objects})
    return object_changes(Declared(manifests=items), view, OWNER)


def applied(item: DeclaredManifest) -> LiveObject:
    """As the cluster has it after it was applied, with what the server adds."""
    body = prepared(item, OWNER)
    metadata = body["metadata"] | {"uid": "1", "resourceVersion": "2", "generation": 1}
    spec = body["spec"] | {"provisioningStrategy": "buffer.x-k8s.io/active-capacity"}
    return live(item.ref, body | {"metadata": metadata, "spec": spec, "status": {"replicas": 3}}, "spec.replicas")


def test_what_is_not_there_is_created_with_its_marks() -> None:
    (change,) = planned(document()).changes
    assert change.action is Action.CREATE
    assert change.changes == (FieldChange("spec.replicas", None, 3),)
    assert change.manifest is not None
    metadata = change.manifest["metadata"]
    assert metadata["namespace"] == "shop"
    assert metadata["labels"] == {PART_OF_LABEL: APPLYSET}
    assert metadata["annotations"]["headroom.dev/source"] == "web.yaml"
    assert metadata["annotations"]["headroom.dev/applied-hash"].startswith("sha256:")


def test_what_is_there_as_declared_is_left_alone() -> None:
    assert planned(document(), objects=(applied(document()),)) == ObjectPlan()


def test_a_changed_field_is_an_update_that_names_it() -> None:
    (change,) = planned(document(spec={"replicas": 5}), objects=(applied(document()),)).changes
    assert change.action is Action.UPDATE
    assert change.changes == (FieldChange("spec.replicas", 3, 5),)


def test_a_field_that_somebody_else_changed_is_put_back() -> None:
    there = applied(document())
    drifted = replace(there, body={**there.body, "spec": {"replicas": 30}})
    (change,) = planned(document(), objects=(drifted,)).changes
    assert change.changes == (FieldChange("spec.replicas", 30, 3),)


def test_a_field_taken_out_of_the_manifest_is_noticed() -> None:
    before = applied(document(spec={"replicas": 3, "percentage": 10}))
    owned = replace(before, managers={"headroom": frozenset({"spec.replicas", "spec.percentage"})})
    (change,) = planned(document(), objects=(owned,)).changes
    assert change.changes == (FieldChange("spec.percentage", 10, None),)


def test_without_knowing_owners_the_hash_alone_tells_of_a_field_taken_out() -> None:
    before = replace(applied(document(spec={"replicas": 3, "percentage": 10})), managers={})
    (change,) = planned(document(), objects=(before,)).changes
    assert [field.path for field in change.changes] == [HASH]


def test_an_object_that_was_there_before_is_adopted() -> None:
    there = live(BUFFER, {"metadata": {"name": "web"}, "spec": {"replicas": 3}})
    (change,) = planned(document(), objects=(there,)).changes
    assert change.action is Action.UPDATE
    assert [field.path for field in change.changes] == [
        "metadata.annotations['headroom.dev/source']",
        "metadata.labels",
        "metadata.namespace",
    ]


@pytest.mark.parametrize("there", [True, False])
def test_ignored_objects_are_left_to_others(there: bool) -> None:  # noqa: FBT001 - a parameter of the test
    objects = (applied(document(spec={"replicas": 9})),) if there else ()
    assert planned(document(ssa="Ignore"), objects=objects).changes == ()


def test_if_not_present_creates_and_never_updates() -> None:
    item = document(ssa="IfNotPresent")
    assert len(planned(item).changes) == 1
    assert planned(item, objects=(applied(document(spec={"replicas": 9})),)).changes == ()


def test_an_object_of_another_apply_set_is_taken_over_only_where_that_is_said() -> None:
    """An ApplySet of kubectl has no inventory, whose name would stand on the object."""
    labels = {PART_OF_LABEL: "applyset-of-kubectl-v1"}
    there = live(BUFFER, {"metadata": {"name": "web", "labels": labels}, "spec": {"replicas": 1}})
    plan = planned(document(), objects=(there,))
    (told,) = plan.findings
    assert told.code == "owned-elsewhere"
    assert "belongs to the ApplySet applyset-of-kubectl-v1" in told.message
    assert not any(change.manifest for change in plan.changes)
    taken = planned(document(adopt="applyset-of-kubectl-v1"), objects=(there,))
    assert (taken.findings, [change.action for change in taken.changes]) == ((), [Action.UPDATE])


def test_a_suspended_object_is_left_as_it_is_wherever_it_was_said() -> None:
    in_git = planned(document(suspend="true"))
    there = live(BUFFER, {"metadata": {"annotations": {"headroom.dev/suspend": "true"}}})
    by_hand = planned(document(), objects=(there,))
    for answer, becomes in ((in_git, "not created"), (by_hand, "left as it is")):
        assert answer.changes == ()
        assert answer.notes == (f"CapacityBuffer/shop/web is suspended: it is {becomes}",)


def test_what_others_refer_to_is_applied_first() -> None:
    answer = planned(document(BUFFER), document(POOL), document(TEMPLATE))
    assert [change.ref.kind for change in answer.changes] == ["PodTemplate", "NodePool", "CapacityBuffer"]


def test_a_partial_pool_touches_only_its_fields_and_joins_no_set() -> None:
    there = live(POOL, {"metadata": {"name": "general"}, "spec": {"weight": 1, "template": {"spec": {}}}})
    item = document(POOL, {"weight": 5}, partial=True)
    (change,) = planned(item, objects=(there,)).changes
    assert FieldChange("spec.weight", 1, 5) in change.changes
    assert change.manifest is not None
    assert change.manifest["spec"] == {"weight": 5}
    assert "labels" not in change.manifest["metadata"]


def test_a_partial_pool_needs_the_pool() -> None:
    answer = planned(document(POOL, {"weight": 5}, partial=True, file="pools.yaml"))
    (finding,) = answer.findings
    assert finding.code == "pool-not-there"
    assert finding.position == SourcePosition("pools.yaml", 1)
    assert answer.changes == ()


@pytest.mark.parametrize(
    ("declared", "there", "partial", "refused"),
    [
        ({"replicas": 2, "template": {}}, {"template": {}}, False, True),
        ({"template": {}}, {"replicas": 2, "template": {}}, False, True),
        ({"replicas": 3, "template": {}}, {"replicas": 2, "template": {}}, False, False),
        ({"weight": 3}, {"replicas": 2, "template": {}}, True, False),
        ({"replicas": 3}, {"template": {}}, True, True),
    ],
)
def test_a_pool_cannot_turn_static_or_dynamic(
    declared: dict[str, Any],
    there: dict[str, Any],
    partial: bool,  # noqa: FBT001 - a parameter of the test
    refused: bool,  # noqa: FBT001 - likewise
) -> None:
    answer = planned(document(POOL, declared, partial=partial), objects=(live(POOL, {"spec": there}),))
    assert [finding.code for finding in answer.findings] == (["static-pool-change"] if refused else [])
    assert (answer.changes == ()) is refused


def test_what_kubernetes_does_not_store_of_its_own_kinds_is_no_difference_and_of_others_it_is() -> None:
    for ref, changed in ((TEMPLATE, False), (BUFFER, True)):
        item = document(ref, {"replicas": 3, "limits": {}})
        there = applied(item)
        spec = {key: value for key, value in there.body["spec"].items() if key != "limits"}
        stored = replace(there, body={**there.body, "spec": spec})
        assert bool(planned(item, objects=(stored,)).changes) is changed


# What was changed in the cluster since it was applied: put back, left to a controller, or only told.


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


def planned_over(item: DeclaredManifest, live: LiveObject, drift: Drift = Drift.CORRECT) -> ObjectPlan:
    return object_changes(Declared(manifests=(item,)), ClusterView(objects={POOL: live}), OWNER, drift)


SINCE, DIFFERS = "changed in the cluster since it was applied from pools.yaml", "differs from pools.yaml"


@pytest.mark.parametrize(
    ("says", "weight", "manager", "spec", "force", "reason"),
    [
        *(("what a person changed is taken back", 50, manager, {"weight": 10}, True, SINCE)
          for manager in ("kubectl-edit", "kubectl-patch", "kubectl")),
        ("a field that a controller took is not fought over", 50, "weight-controller", {"weight": 10}, False, ""),
        ("replicas belong to whoever scales", 50, "kubectl", {"replicas": 9}, False, ""),
        ("a conflict over what was never applied is somebody's to settle", 60, "kubectl-edit", {"weight": 10}, False, DIFFERS),
    ],
)  # fmt: skip
def test_what_was_changed_since(
    says: str,
    weight: int,
    manager: str,
    spec: dict[str, int],
    force: bool,  # noqa: FBT001 - the case
    reason: str,
) -> None:
    (change,) = planned_over(pool(weight), changed(pool(), manager, **spec)).changes
    assert (change.force, reason or change.reason) == (force, change.reason), says


@pytest.mark.parametrize("by_annotation", [True, False])
def test_drift_is_told_and_left_where_that_is_the_policy(by_annotation: bool) -> None:  # noqa: FBT001 - the case
    item = pool(drift="report") if by_annotation else pool()
    plan = planned_over(
        item, changed(item, "kubectl-edit", weight=10), Drift.CORRECT if by_annotation else Drift.REPORT
    )
    assert plan.changes == ()
    (finding,) = plan.findings
    assert finding.code == "drifted"
    assert finding.path == "spec.weight"
    assert finding.message == (
        "was changed in the cluster by kubectl-edit since it was applied: spec.weight is 10, not 50"
    )


def test_the_annotation_goes_before_the_setting() -> None:
    item = pool(drift="correct")
    assert planned_over(item, changed(item, "kubectl-edit", weight=10), Drift.REPORT).changes


def test_a_change_in_git_is_applied_whatever_the_policy() -> None:
    live = changed(pool(), "kubectl-edit", weight=10)
    assert planned_over(pool(weight=60), replace(live), Drift.REPORT).changes
