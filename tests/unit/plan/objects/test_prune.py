"""What Git no longer declares goes, carefully."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.changes import Action
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import PRUNES_KEY, Inventory, WaitingDeletions
from reconciler.model.rules import UNCAPPED, Caps
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.objects.objects import object_changes, prepared
from reconciler.plan.objects.prune import Pruning, let_down, prune
from tests.builders import buffer_ref, demand, manifest
from tests.unit.plan.worlds import APPLYSET, HELD, NOW, OWNER, chunks, live, occupied, together, with_node

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")


def member(ref: ObjectRef, *, file: str = "web.yaml", part_of: str = APPLYSET, **annotations: str) -> LiveObject:
    marks = {"headroom.dev/source": file} | {f"headroom.dev/{key}": value for key, value in annotations.items()}
    return live(ref, {"metadata": {"labels": {PART_OF_LABEL: part_of}, "annotations": marks}})


def pruned(
    *objects: LiveObject,
    declared: Declared | None = None,
    caps: Caps = UNCAPPED,
    blocked: bool = False,
    members: Iterable[ObjectRef] | None = None,
    memory: Mapping[str, Any] | None = None,
    now: datetime = NOW,
    bins: Sequence[Bin] = (),
) -> Pruning:
    view = ClusterView(
        objects={item.ref: item for item in objects},
        inventory=Inventory(
            frozenset(members if members is not None else (item.ref for item in objects)), memory or {}
        ),
    )
    return prune(declared or Declared(), view, applyset_id=APPLYSET, caps=caps, blocked=blocked, now=now, bins=bins)


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
    ("annotations", "kept"), [({"prune": "disabled"}, True), ({"suspend": "true"}, True), ({"prune": "enabled"}, False)]
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
    assert answer.notes == (), "what waits is told once, with the reason"
    assert answer.waiting == WaitingDeletions((buffer_ref(),))
    assert answer.edges == ()


QUARTER = Caps()


def buffers(count: int) -> list[LiveObject]:
    return [member(buffer_ref(f"b{index}")) for index in range(count)]


def test_what_waits_tells_how_many_may_go_and_when_the_next_may() -> None:
    answer = pruned(*buffers(8), caps=QUARTER)
    rest = tuple(buffer_ref(f"b{index}") for index in range(5, 8))
    later = NOW + timedelta(hours=1)
    assert answer.waiting == WaitingDeletions(rest, most=5, held=8, most_nodes=2, gone=5, next_at=later)
    assert answer.waiting.cap == "at most 5 of 8 objects (5 so far) go within an hour"
    assert answer.edges == (Edge(NOW + timedelta(hours=1), "3 objects no longer declared: the next may be deleted"),)


@pytest.mark.parametrize(
    ("count", "caps", "gone"), [(40, QUARTER, 10), (8, QUARTER, 5), (2, QUARTER, 2), (1, QUARTER, 1), (8, UNCAPPED, 8)]
)
def test_a_quarter_of_the_objects_goes_at_once_and_at_least_five(count: int, caps: Caps, gone: int) -> None:
    answer = pruned(*buffers(count), caps=caps)
    assert len(answer.changes) == gone
    assert bool(answer.notes) is (gone < count)


def holding(**chunks_of: Mapping[str, int]) -> tuple[Bin, ...]:
    """Held nodes by name, `_` for `-`, each with the chunks of buffers by their names."""
    places = {name: [chunks(count, buffer) for buffer, count in held.items()] for name, held in chunks_of.items()}
    view = together(*(with_node(name.replace("_", "-"), HELD) for name in places))
    return all_bins(view, occupied(**places))


def a_node_each(count: int, buffer: str = "web") -> tuple[Bin, ...]:
    return holding(**{f"n{index}": {buffer: 1 + index} for index in range(count)})


def test_a_node_that_others_need_too_costs_nothing() -> None:
    bins = holding(n1={"b0": 1, "web": 1}, n2={"b1": 1, "web": 1}, n3={"b2": 1, "web": 1}, n4={"web": 4})
    answer = pruned(*buffers(3), caps=QUARTER, bins=bins)
    assert names(answer) == ["b0", "b1", "b2"]


def test_a_buffer_that_is_let_down_asks_for_what_is_left_until_it_is_declared_again() -> None:
    memory = pruned(member(buffer_ref()), caps=QUARTER, bins=a_node_each(7)).records
    view = ClusterView(inventory=Inventory(frozenset({buffer_ref()}), memory))
    (less,) = let_down([demand(count=28)], view, Declared())
    assert (less.desired, sum(group.count for group in less.groups)) == (25, 25)
    assert less.explanation[-1] == "25 left of 28: it is no longer declared and goes in steps"
    item = DeclaredManifest(buffer_ref(), {"kind": "CapacityBuffer"}, SourcePosition("web.yaml", 1))
    assert let_down([demand(count=28)], view, Declared(manifests=(item,))) == (demand(count=28),)


def test_what_has_no_steps_goes_alone_in_an_hour() -> None:
    request = ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train")
    places = {f"n{index}": [Holding(request, 0, 1)] for index in range(7)}
    bins = all_bins(together(*(with_node(name, HELD) for name in places)), occupied(**places))
    answer = pruned(member(request), caps=QUARTER, bins=bins)
    assert names(answer) == ["train"]
    began = {
        PRUNES_KEY: {"since": NOW.isoformat(), "held": 1, "nodesHeld": 7, "released": ["n9"]},
    }
    assert names(pruned(member(request), caps=QUARTER, bins=bins, memory=began)) == []


def test_a_pool_with_many_held_nodes_goes_only_when_a_person_allows_it() -> None:
    """A misspelt name of a NodePool that is marked for deletion took all of its nodes at once."""
    places = {f"n{index}": [Holding(buffer_ref(), 0, 1)] for index in range(7)}
    bins = all_bins(together(*(with_node(name, HELD) for name in places)), occupied(**places))
    answer = pruned(member(POOL, prune="true"), caps=QUARTER, bins=bins)
    assert names(answer) == []
    assert not answer.waiting, "no hour is long enough"
    (note,) = answer.notes
    assert note.endswith(
        "7 of its nodes hold chunks, and at most 2 go within an hour; "
        'a commit with the trailer "Headroom-Allow-Removals: true" allows it'
    )
    assert names(pruned(member(POOL, prune="true"), caps=UNCAPPED, bins=bins)) == ["general"]
    assert names(pruned(member(POOL, prune="true"), caps=QUARTER, bins=bins[:2])) == ["general"]


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
    assert names(pruned(*objects, caps=Caps(prune_share=0.4, prune_objects_at_least=1))) == ["b0", "b1"]
    assert names(pruned(*objects)) == ["b0", "b1", "b2", "web", "general"]


def test_a_pool_that_was_changed_in_part_is_given_back_and_never_deleted() -> None:
    item = DeclaredManifest(
        POOL,
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {"weight": 5}},
        SourcePosition("pools.yaml", 1),
        partial=True,
    )
    body: dict[str, Any] = prepared(item, OWNER)
    there = live(POOL, body, "spec.weight")
    view = ClusterView(objects={POOL: there})
    assert object_changes(Declared(manifests=(item,)), view, OWNER).changes == ()
    (change,) = pruned(there, members=()).changes
    assert change.action is Action.UPDATE
    assert change.manifest == manifest("karpenter.sh/v1", "NodePool", "general", spec={})
    # Once the marks are given back, nothing is left to do.
    assert pruned(live(POOL, {"metadata": {"name": "general"}}), members=()) == Pruning()


def test_another_headrooms_part_of_a_pool_is_left_alone() -> None:
    theirs = live(POOL, {"metadata": {"annotations": {"headroom.dev/partial": "applyset-of-another-v1"}}})
    assert pruned(theirs, members=()) == Pruning()


def test_a_declared_object_that_sleeps_by_its_schedule_goes_whatever_the_share() -> None:
    others = [member(buffer_ref(f"b{index}")) for index in range(3)]
    declared = Declared(dormant={item.ref: "MetricsProducer/shop/office is at 0" for item in others})
    answer = pruned(*others, declared=declared, caps=QUARTER)
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
    assert (kept.changes, kept.records) == ((), {})
    assert [(finding.code, finding.ref) for finding in kept.findings] == [("pool-not-pruned", POOL)]
    assert kept.findings[0].message.startswith("no longer declared, but stays")  # reports put the object before it
    gone = pruned(member(POOL, prune="true"))
    assert ([change.action for change in gone.changes], gone.findings) == ([Action.DELETE], ())


TWO = Caps(prune_objects_at_least=1)


def passes(count: int, *, caps: Caps, every: timedelta) -> list[list[str]]:
    """What each of a row of passes deletes, of eight objects that are all gone from Git; the inventory shrinks with them."""
    left = [member(buffer_ref(f"b{index}")) for index in range(8)]
    memory: Mapping[str, Any] = {}
    found = []
    for number in range(count):
        answer = pruned(*left, caps=caps, memory=memory, now=NOW + number * every)
        memory = answer.records
        found.append(names(answer))
        left = [item for item in left if item.ref.name not in names(answer)]
    return found


def test_passes_do_not_renew_the_share_and_the_next_hour_does() -> None:
    assert passes(60, caps=TWO, every=timedelta(seconds=30)) == [["b0", "b1"], *([[]] * 59)]
    assert passes(3, caps=TWO, every=timedelta(hours=1)) == [["b0", "b1"], ["b2"], ["b3"]]


def test_a_pass_that_may_prune_nothing_forgets_nothing() -> None:
    there = [member(buffer_ref(f"b{index}")) for index in range(8)]
    first = pruned(*there, caps=TWO)
    blocked = pruned(*there, caps=TWO, memory=first.records, blocked=True, now=NOW + timedelta(minutes=1))
    assert blocked.records == first.records


@pytest.mark.parametrize("written", [[], {"since": "yesterday"}, {"since": NOW.isoformat(), "held": 1}, "x"])
def test_a_memory_of_another_version_is_forgotten(written: object) -> None:
    answer = pruned(member(buffer_ref()), memory={"prunes": written})
    assert names(answer) == ["web"]
