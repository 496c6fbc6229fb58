"""What Git no longer declares goes, carefully."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.model.changes import Action
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import ClusterView, Inventory, LiveObject
from reconciler.plan.objects import object_changes, prepared
from reconciler.plan.prune import Pruning, prune
from tests.builders import buffer_ref
from tests.unit.plan.worlds import APPLYSET, live

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")


def member(ref: ObjectRef, *, file: str = "web.yaml", part_of: str = APPLYSET, **annotations: str) -> LiveObject:
    marks = {"headroom.dev/source": file} | {f"headroom.dev/{key}": value for key, value in annotations.items()}
    return live(ref, {"metadata": {"labels": {PART_OF_LABEL: part_of}, "annotations": marks}})


def pruned(
    *objects: LiveObject,
    declared: Declared | None = None,
    share: float = 1.0,
    blocked: bool = False,
    members: Iterable[ObjectRef] | None = None,
) -> Pruning:
    view = ClusterView(
        objects={item.ref: item for item in objects},
        inventory=Inventory(frozenset(members if members is not None else (item.ref for item in objects))),
    )
    return prune(declared or Declared(), view, applyset_id=APPLYSET, share=share, blocked=blocked)


def names(answer: Pruning) -> list[str]:
    return [change.ref.name for change in answer.changes]


def test_a_member_that_is_no_longer_declared_is_deleted() -> None:
    (change,) = pruned(member(buffer_ref())).changes
    assert (change.ref, change.action) == (buffer_ref(), Action.DELETE)


def test_what_is_declared_stays() -> None:
    item = DeclaredManifest(buffer_ref(), {"kind": "CapacityBuffer"}, SourcePosition("web.yaml", 1))
    assert pruned(member(buffer_ref()), declared=Declared(manifests=(item,))) == Pruning()


def test_what_the_inventory_does_not_list_is_never_touched() -> None:
    assert pruned(member(buffer_ref()), members=()) == Pruning()


def test_a_member_that_is_gone_already_needs_nothing() -> None:
    assert pruned(members=[buffer_ref()]) == Pruning()


def test_a_document_that_is_broken_may_still_declare_it() -> None:
    by_ref = pruned(member(buffer_ref()), declared=Declared(broken=frozenset({buffer_ref()})))
    assert by_ref == Pruning()
    by_file = pruned(member(buffer_ref()), declared=Declared(broken_files=frozenset({"web.yaml"})))
    assert by_file.changes == ()
    assert "web.yaml cannot be read in full" in by_file.notes[0]


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [({"prune": "disabled"}, True), ({"suspend": "true"}, True), ({"prune": "enabled"}, False)],
)
def test_an_object_can_be_kept_by_annotation(annotations: dict[str, str], kept: bool) -> None:  # noqa: FBT001 - a case
    answer = pruned(member(buffer_ref(), **annotations))
    assert (answer.changes == ()) is kept
    assert bool(answer.notes) is kept


def test_what_lost_its_label_or_belongs_to_another_set_is_not_ours_to_delete() -> None:
    assert pruned(member(buffer_ref(), part_of="applyset-of-another-v1")) == Pruning()


def test_nothing_goes_while_the_plan_is_blocked() -> None:
    answer = pruned(member(buffer_ref()), blocked=True)
    assert answer.changes == ()
    assert answer.notes == ("1 object is no longer declared, which waits",)


@pytest.mark.parametrize(("count", "share", "gone"), [(8, 0.25, 2), (3, 0.25, 1), (1, 0.25, 1), (8, 1.0, 8)])
def test_only_a_share_goes_at_once_and_at_least_one(count: int, share: float, gone: int) -> None:
    answer = pruned(*(member(buffer_ref(f"b{index}")) for index in range(count)), share=share)
    assert names(answer) == [f"b{index}" for index in range(gone)]
    assert bool(answer.notes) is (gone < count)
    if answer.notes:
        assert f"CapacityBuffer/shop/b{gone}" in answer.notes[0]


def test_pools_go_last() -> None:
    other = ObjectRef("x-k8s.io", "Anything", "", "other")
    assert names(pruned(member(POOL), member(buffer_ref()), member(other))) == ["web", "other", "general"]


def test_a_pool_that_was_changed_in_part_is_given_back_and_never_deleted() -> None:
    item = DeclaredManifest(
        POOL,
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {"weight": 5}},
        SourcePosition("pools.yaml", 1),
        partial=True,
    )
    body: dict[str, Any] = prepared(item, APPLYSET)
    there = live(POOL, body, "spec.weight")
    view = ClusterView(objects={POOL: there})
    assert object_changes(Declared(manifests=(item,)), view, APPLYSET).changes == ()
    (change,) = pruned(there, members=()).changes
    assert change.action is Action.UPDATE
    assert change.manifest == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {},
    }
    # Once the marks are given back, nothing is left to do.
    assert pruned(live(POOL, {"metadata": {"name": "general"}}), members=()) == Pruning()


def test_another_headrooms_part_of_a_pool_is_left_alone() -> None:
    theirs = live(POOL, {"metadata": {"annotations": {"headroom.dev/partial": "applyset-of-another-v1"}}})
    assert pruned(theirs, members=()) == Pruning()


def test_a_declared_object_that_sleeps_by_its_schedule_goes_whatever_the_share() -> None:
    others = [member(buffer_ref(f"b{index}")) for index in range(3)]
    declared = Declared(dormant={item.ref: "MetricsProducer/shop/office is at 0" for item in others})
    answer = pruned(*others, declared=declared, share=0.25)
    assert [(change.action, change.reason) for change in answer.changes] == [
        (Action.DELETE, "MetricsProducer/shop/office is at 0")
    ] * 3


def test_a_sleeping_object_stays_where_nothing_may_be_deleted() -> None:
    declared = Declared(dormant={buffer_ref(): "asleep"})
    assert pruned(member(buffer_ref()), declared=declared, blocked=True) == Pruning(
        (), ("CapacityBuffer/shop/web: asleep by schedule, which waits",)
    )
    assert pruned(member(buffer_ref(), prune="disabled"), declared=declared) == Pruning()
    assert pruned(member(buffer_ref()), declared=declared, members=()) == Pruning(), "it is somebody else's"
