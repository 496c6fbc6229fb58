"""What Git no longer declares goes, carefully."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.changes import Action
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.edges import Edge
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import ClusterView, Inventory, LiveObject
from reconciler.model.waiting_deletions import WaitingDeletions
from reconciler.plan.objects.objects import object_changes, prepared
from reconciler.plan.objects.prune import Pruning, prune
from tests.builders import buffer_ref
from tests.unit.plan.worlds import APPLYSET, NOW, live

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
    memory: Mapping[str, Any] | None = None,
    now: datetime = NOW,
) -> Pruning:
    view = ClusterView(
        objects={item.ref: item for item in objects},
        inventory=Inventory(
            frozenset(members if members is not None else (item.ref for item in objects)), memory or {}
        ),
    )
    return prune(declared or Declared(), view, applyset_id=APPLYSET, share=share, blocked=blocked, now=now)


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
    assert "web.yaml has errors" in by_file.notes[0]


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
    assert answer.waiting == WaitingDeletions((buffer_ref(),))
    assert answer.edges == ()


def test_what_waits_tells_how_many_may_go_and_when_the_next_may() -> None:
    answer = pruned(*(member(buffer_ref(f"b{index}")) for index in range(8)), share=0.25)
    rest = tuple(buffer_ref(f"b{index}") for index in range(2, 8))
    assert answer.waiting == WaitingDeletions(rest, most=2, held=8, next_at=NOW + timedelta(hours=1))
    assert answer.edges == (Edge(NOW + timedelta(hours=1), "6 objects no longer declared: the next may be deleted"),)


@pytest.mark.parametrize(("count", "share", "gone"), [(8, 0.25, 2), (3, 0.25, 1), (1, 0.25, 1), (8, 1.0, 8)])
def test_only_a_share_goes_at_once_and_at_least_one(count: int, share: float, gone: int) -> None:
    answer = pruned(*(member(buffer_ref(f"b{index}")) for index in range(count)), share=share)
    assert names(answer) == [f"b{index}" for index in range(gone)]
    assert bool(answer.notes) is (gone < count)
    if answer.notes:
        assert f"CapacityBuffer/shop/b{gone}" in answer.notes[0]


def test_pools_go_last() -> None:
    other = ObjectRef("x-k8s.io", "Anything", "", "other")
    assert names(pruned(member(POOL, prune="true"), member(buffer_ref()), member(other))) == ["web", "other", "general"]


@pytest.mark.parametrize(
    "referred",
    [
        ObjectRef("", "PodTemplate", "shop", "web"),
        ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "web"),
    ],
)
def test_what_others_refer_to_goes_after_them_though_a_share_makes_them_wait(referred: ObjectRef) -> None:
    """Else a buffer that may stay for an hour would lose its capacity at once."""
    objects = [member(referred), *(member(buffer_ref(f"b{index}")) for index in range(3)), member(POOL, prune="true")]
    assert names(pruned(*objects, share=0.4)) == ["b0", "b1"]
    assert names(pruned(*objects)) == ["b0", "b1", "b2", "web", "general"]


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
        (), ("CapacityBuffer/shop/web: asleep by schedule, which waits",), waiting=WaitingDeletions((buffer_ref(),))
    )
    assert pruned(member(buffer_ref(), prune="disabled"), declared=declared) == Pruning()
    assert pruned(member(buffer_ref()), declared=declared, members=()) == Pruning(), "it is somebody else's"


def test_a_pool_is_only_deleted_when_it_is_marked_for_it() -> None:
    kept = pruned(member(POOL))
    assert (kept.changes, kept.memory) == ((), {})
    assert [(finding.code, finding.ref) for finding in kept.findings] == [("pool-not-pruned", POOL)]
    assert kept.findings[0].message.startswith("no longer declared, but stays")  # reports put the object before it
    gone = pruned(member(POOL, prune="true"))
    assert ([change.action for change in gone.changes], gone.findings) == ([Action.DELETE], ())


def passes(count: int, *, share: float, every: timedelta) -> list[list[str]]:
    """What each of a row of passes deletes, of eight objects that are all gone from Git; the inventory shrinks with them."""
    left = [member(buffer_ref(f"b{index}")) for index in range(8)]
    memory: Mapping[str, Any] = {}
    found = []
    for number in range(count):
        answer = pruned(*left, share=share, memory=memory, now=NOW + number * every)
        memory = answer.memory
        found.append(names(answer))
        left = [item for item in left if item.ref.name not in names(answer)]
    return found


def test_passes_do_not_renew_the_share_and_the_next_hour_does() -> None:
    assert passes(60, share=0.25, every=timedelta(seconds=30)) == [["b0", "b1"], *([[]] * 59)]
    assert passes(3, share=0.25, every=timedelta(hours=1)) == [["b0", "b1"], ["b2"], ["b3"]]


def test_what_is_still_there_is_deleted_again_and_counts_once() -> None:
    there = [member(buffer_ref(f"b{index}")) for index in range(8)]
    first = pruned(*there, share=0.25)
    second = pruned(*there, share=0.25, memory=first.memory, now=NOW + timedelta(minutes=1))
    assert names(second) == names(first) == ["b0", "b1"]
    assert second.memory == first.memory


def test_a_pass_that_may_prune_nothing_forgets_nothing() -> None:
    there = [member(buffer_ref(f"b{index}")) for index in range(8)]
    first = pruned(*there, share=0.25)
    blocked = pruned(*there, share=0.25, memory=first.memory, blocked=True, now=NOW + timedelta(minutes=1))
    assert blocked.memory == first.memory


@pytest.mark.parametrize("written", [[], {"since": "yesterday"}, {"since": NOW.isoformat(), "held": 1}, "x"])
def test_a_memory_of_another_version_is_forgotten(written: object) -> None:
    answer = pruned(member(buffer_ref()), memory={"prunes": written})
    assert names(answer) == ["web"]
