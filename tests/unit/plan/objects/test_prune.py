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


@pytest.mark.parametrize("annotations", [{}, {"prune": "enabled"}], ids=str)
def test_a_member_that_is_no_longer_declared_is_deleted(annotations: dict[str, str]) -> None:
    (change,) = pruned(member(buffer_ref(), **annotations)).changes
    assert (change.ref, change.action) == (buffer_ref(), Action.DELETE)


DECLARED = Declared(
    manifests=(DeclaredManifest(buffer_ref(), {"kind": "CapacityBuffer"}, SourcePosition("web.yaml", 1)),)
)
THEIR_PART = live(POOL, {"metadata": {"annotations": {"headroom.dev/partial": "applyset-of-another-v1"}}})
UNTOUCHED = {
    "what is declared": pruned(member(buffer_ref()), declared=DECLARED),
    "what a broken document may still declare": pruned(
        member(buffer_ref()), declared=Declared(broken=frozenset({buffer_ref()}))
    ),
    "what the inventory does not list": pruned(member(buffer_ref()), members=()),
    "a member that is gone already": pruned(members=[buffer_ref()]),
    "what belongs to another set": pruned(member(buffer_ref(), part_of="applyset-of-another-v1")),
    "another headroom's part of a pool": pruned(THEIR_PART, members=()),
}


@pytest.mark.parametrize("found", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_is_never_touched(found: Pruning) -> None:
    assert found == Pruning()


KEPT = {
    "by an annotation": ({"prune": "disabled"}, Declared(), "headroom.dev/prune"),
    "by being suspended": ({"suspend": "true"}, Declared(), "it is suspended"),
    "by a file that cannot be read": ({}, Declared(broken_files=frozenset({"web.yaml"})), "web.yaml has errors"),
    "by one that it may have moved to": ({}, Declared(named_in_broken={"web": "new.yaml"}), "new.yaml has errors"),
}


@pytest.mark.parametrize(("annotations", "declared", "words"), KEPT.values(), ids=KEPT)
def test_an_object_is_kept_and_the_plan_says_why(annotations: dict[str, str], declared: Declared, words: str) -> None:
    answer = pruned(member(buffer_ref(), **annotations), declared=declared)
    assert answer.changes == ()
    assert words in answer.notes[0]


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


def holding(**places: Sequence[Holding]) -> tuple[Bin, ...]:
    """Held nodes by name, each with what it holds."""
    return all_bins(together(*(with_node(name, HELD) for name in places)), occupied(**places))


def a_node_each(count: int, ref: ObjectRef = buffer_ref()) -> tuple[Bin, ...]:  # noqa: B008 - immutable
    """One chunk on the first node, and one more on each that follows."""
    return holding(**{f"n{index}": [Holding(ref, 0, 1 + index)] for index in range(count)})


def test_a_node_that_others_need_too_costs_nothing() -> None:
    bins = holding(n4=[chunks(4)], **{f"n{index + 1}": [chunks(1, f"b{index}"), chunks(1)] for index in range(3)})
    answer = pruned(*buffers(3), caps=QUARTER, bins=bins)
    assert names(answer) == ["b0", "b1", "b2"]


def test_a_buffer_that_is_let_down_asks_for_what_is_left_until_it_is_declared_again() -> None:
    memory = pruned(member(buffer_ref()), caps=QUARTER, bins=a_node_each(7)).records
    view = ClusterView(inventory=Inventory(frozenset({buffer_ref()}), memory))
    (less,) = let_down([demand(count=28)], view, Declared())
    assert (less.desired, sum(group.count for group in less.groups)) == (25, 25)
    assert less.explanation[-1] == "25 left of 28: it is no longer declared and goes in steps"
    assert let_down([demand(count=28)], view, DECLARED) == (demand(count=28),)


def test_what_has_no_steps_goes_alone_in_an_hour() -> None:
    request = ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train")
    bins = a_node_each(7, request)
    answer = pruned(member(request), caps=QUARTER, bins=bins)
    assert names(answer) == ["train"]
    began = {
        PRUNES_KEY: {"since": NOW.isoformat(), "held": 1, "nodesHeld": 7, "released": ["n9"]},
    }
    assert names(pruned(member(request), caps=QUARTER, bins=bins, memory=began)) == []


def test_a_pool_with_many_held_nodes_goes_only_when_a_person_allows_it() -> None:
    """A misspelt name of a NodePool that is marked for deletion took all of its nodes at once."""
    bins = a_node_each(7)
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
    objects = [member(referred), *buffers(3), member(POOL, prune="true")]
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


def test_a_declared_object_that_sleeps_by_its_schedule_goes_whatever_the_share() -> None:
    others = buffers(3)
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
    left = buffers(8)
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
    there = buffers(8)
    first = pruned(*there, caps=TWO)
    blocked = pruned(*there, caps=TWO, memory=first.records, blocked=True, now=NOW + timedelta(minutes=1))
    assert blocked.records == first.records


@pytest.mark.parametrize("written", [[], {"since": "yesterday"}, {"since": NOW.isoformat(), "held": 1}, "x"])
def test_a_memory_of_another_version_is_forgotten(written: object) -> None:
    answer = pruned(member(buffer_ref()), memory={"prunes": written})
    assert names(answer) == ["web"]
