"""Offerings that gave no node are stayed away from for a while, doubling."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, InstanceType, Node, NodeClaim
from reconciler.model.remembered import Inventory
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.plan.bins import creations
from reconciler.plan.launching.back_offs import LaunchRecord, launch_record
from reconciler.plan.launching.caps import Capped
from tests.builders import buffer_ref, instance_type
from tests.unit.plan.worlds import HELD, NOW, chunks, claim, made, planned, pool_node

RULES = PlacementRules()
CREATED = creations([planned()], ())
NAME = CREATED[0].name
ON_ITS_WAY = made(CREATED[0], NOW)
HERE = {INSTANCE_TYPE_LABEL: "m-4x", ZONE_LABEL: "zone-a", CAPACITY_TYPE_LABEL: "on-demand"}


def there(name: str = NAME) -> NodeClaim:
    return claim(name, annotations=HELD, labels=HERE)


def read(
    memory: dict[str, Any],
    *claims: NodeClaim,
    now: datetime = NOW,
    nodes: tuple[Node, ...] = (),
    catalog: tuple[InstanceType, ...] = (),
) -> LaunchRecord:
    kept: dict[str, Any] = json.loads(json.dumps(memory))
    view = ClusterView(node_claims=claims, nodes=nodes, inventory=Inventory(records=kept))
    return launch_record(view, now, RULES, catalog)


def asked_for() -> dict[str, Any]:
    return LaunchRecord().records(CREATED, (), NOW)


def seen() -> dict[str, Any]:
    return read(asked_for(), ON_ITS_WAY).records((), (), NOW)


def failed(times: int = 1) -> tuple[dict[str, Any], datetime]:
    """The memory after so many failures in a row, each right after the back-off before it ended."""
    memory, now = seen(), NOW
    for turn in range(times):
        record = read(memory, now=now)
        assert tuple(record.vanished) == (NAME,)
        if turn < times - 1:
            now = record.back_offs[0].until
            again = record.records(CREATED, (), now)
            memory = read(again, replace(ON_ITS_WAY, created=now), now=now).records((), (), now)
        else:
            memory = record.records((), (), now)
    return memory, now


def test_a_placeholder_that_was_there_and_vanished_has_failed_and_its_offerings_are_avoided_for_a_while() -> None:
    record = read(seen())
    assert tuple(record.vanished) == (NAME,)
    (back_off,) = record.back_offs
    end = NOW + RULES.back_off
    assert (back_off.failures, back_off.until, back_off.offered.instance_types) == (1, end, ("m-4x",))
    memory, _ = failed()
    assert read(memory).avoided(NOW) == {("m-4x", zone, "on-demand") for zone in ("zone-a", "zone-b")}
    assert (read(memory).next_end(NOW), read(memory).next_end(end), read(memory).avoided(end)) == (
        end,
        None,
        frozenset(),
    )


def test_several_of_one_offering_that_vanish_together_found_out_the_same_thing_once() -> None:
    """Also where they were there and gone between two passes: a launch is remembered once the API server has taken it."""
    twice = creations([planned(), planned()], ())
    record = read(LaunchRecord().records(twice, (), NOW), now=NOW + timedelta(seconds=1))
    assert set(record.vanished) == {item.name for item in twice}
    assert [item.failures for item in record.back_offs] == [1]


def test_one_that_vanishes_a_pass_later_than_another_found_out_nothing_new() -> None:
    twice = creations([planned(), planned()], ())
    slower = made(twice[1], NOW)
    first = read(LaunchRecord().records(twice, (), NOW), slower)
    assert tuple(first.vanished) == (twice[0].name,)
    second = read(first.records((), (), NOW), now=NOW + timedelta(seconds=5))
    assert tuple(second.vanished) == (twice[1].name,)
    assert second.back_offs == first.back_offs


def test_one_that_is_being_deleted_before_its_node_is_there_has_failed() -> None:
    for gone_wrong in (replace(ON_ITS_WAY, deleting=True), replace(ON_ITS_WAY, conditions=(("Launched", "False"),))):
        record = read(seen(), gone_wrong)
        assert tuple(record.vanished) == (NAME,)
        # It counts once, however long it lingers.
        for _ in range(2):
            record = read(record.records((), (), NOW), gone_wrong)
            assert record.vanished == {}
            assert [item.failures for item in record.back_offs] == [1]


NOTHING_FAILED = {
    "it registered": read(read(seen(), there()).records((), (), NOW)),
    "headroom deleted it itself": read(read(seen(), ON_ITS_WAY).records((), [NAME], NOW)),
    "it is Karpenter's own": read({}, claim("theirs", node_name=None, placeholder=False)),
    "another version remembered otherwise": read({"launches": {"a": {"since": "yesterday"}}, "backOffs": [1]}),
    "or something else altogether": read({"launches": "none"}),
}


@pytest.mark.parametrize("record", NOTHING_FAILED.values(), ids=NOTHING_FAILED)
def test_no_launch_is_watched_and_none_has_failed(record: LaunchRecord) -> None:
    assert record == LaunchRecord()


def test_one_that_registered_has_not_failed_whatever_becomes_of_it() -> None:
    assert (read(seen(), there()).launches, read(seen(), there()).back_offs) == ({}, ())
    assert read(seen(), replace(there(), deleting=True)).back_offs == ()


def test_placeholders_on_their_way_are_remembered_even_if_the_memory_was_lost() -> None:
    record = read({}, ON_ITS_WAY)
    assert record.launches[NAME].offered.zones == ("zone-a", "zone-b")
    assert tuple(read(record.records((), (), NOW)).vanished) == (NAME,)


def test_back_offs_double_up_to_the_longest() -> None:
    delays = []
    for times in range(1, 8):
        memory, now = failed(times)
        (entry,) = memory["backOffs"]
        assert entry["failures"] == times
        delays.append(datetime.fromisoformat(entry["until"]) - now)
    assert delays[:3] == [timedelta(minutes=3), timedelta(minutes=6), timedelta(minutes=10)]
    assert delays[3:] == [RULES.back_off_at_most] * 4


LATER = NOW + timedelta(minutes=1)
FORGOTTEN = NOW + RULES.back_off + RULES.back_off_at_most


def of_karpenter(launched: datetime, **fields: Any) -> NodeClaim:
    others: dict[str, Any] = {"labels": HERE, "conditions": {"Launched": "True"}, **fields}
    return claim("theirs", placeholder=False, node_name=None, changed={"Launched": launched}, **others)


def after_a_failure(*claims: NodeClaim, now: datetime = LATER, nodes: tuple[Node, ...] = ()) -> LaunchRecord:
    return read(failed()[0], *claims, now=now, nodes=nodes)


IS_OVER = {
    "Karpenter launched the offering": after_a_failure(of_karpenter(LATER)),
    "a node of it joined": after_a_failure(nodes=(pool_node("by-hand", pool="", created=LATER),)),
    "headroom's next launch came up": read(after_a_failure(now=NOW).records(CREATED, (), NOW), there(), now=NOW),
    "it ended long ago": after_a_failure(now=FORGOTTEN),
}
LASTS = {
    "Karpenter launched it before": after_a_failure(of_karpenter(NOW - timedelta(seconds=1))),
    "Karpenter launched another offering": after_a_failure(of_karpenter(LATER, labels=HERE | {ZONE_LABEL: "zone-c"})),
    "Karpenter has not launched yet": after_a_failure(of_karpenter(LATER, conditions={"Launched": "Unknown"})),
    "it is a second too early to forget it": after_a_failure(now=FORGOTTEN - timedelta(seconds=1)),
}


@pytest.mark.parametrize("record", IS_OVER.values(), ids=IS_OVER)
def test_a_back_off_is_over(record: LaunchRecord) -> None:
    assert record.back_offs == ()


@pytest.mark.parametrize("record", LASTS.values(), ids=LASTS)
def test_a_back_off_lasts(record: LaunchRecord) -> None:
    assert record.back_offs


def listing(*, available: bool) -> tuple[InstanceType, ...]:
    known = instance_type("m-4x")
    return (replace(known, offerings=tuple(replace(item, available=available) for item in known.offerings)),)


def test_a_catalog_that_lists_the_offering_again_ends_the_wait() -> None:
    memory, _ = failed()
    sold_out = read(memory, now=LATER, catalog=listing(available=False))
    assert sold_out.avoided(LATER)
    again = LATER + timedelta(seconds=30)
    back = read(sold_out.records((), (), LATER), now=again, catalog=listing(available=True))
    assert back.avoided(again) == frozenset()
    # It may say so only because its own memory has run out: a further failure doubles the wait all the same.
    assert [item.failures for item in back.back_offs] == [1]


def test_a_catalog_that_never_noticed_the_stock_out_says_nothing() -> None:
    memory, _ = failed()
    unaware = read(memory, now=LATER, catalog=listing(available=True))
    assert unaware.avoided(LATER)
    assert read(unaware.records((), (), LATER), now=LATER, catalog=listing(available=True)).avoided(LATER)


def of_three(record: LaunchRecord, now: datetime, **holding: Any) -> Capped:
    three = tuple(planned(chunks(1, name)) for name in ("web", "api", "db"))
    return record.probing(Capped(three), now, **({"apart": ()} | holding))


def test_after_a_wait_one_node_tries_and_the_others_follow_when_it_is_there() -> None:
    memory, now = failed()
    end = now + RULES.back_off
    probed = of_three(read(memory, now=end), end)
    assert len(probed.kept) == 1
    assert [cut.waits for cut in probed.cuts] == [
        "waits for a later pass: one node shows first whether its instance types are in stock again"
    ] * 2
    trying = read(memory, now=end).records(creations(probed.kept, ()), (), end)
    assert of_three(read(trying, replace(ON_ITS_WAY, created=end), now=end), end).kept == ()
    assert len(of_three(read(trying, there(), now=end), end).kept) == 3


def test_a_first_launch_and_a_request_that_takes_all_or_nothing_need_no_probe() -> None:
    memory, now = failed()
    end = now + RULES.back_off
    assert len(of_three(LaunchRecord(), NOW).kept) == 3
    everyone = {buffer_ref(name) for name in ("web", "api", "db")}
    assert len(of_three(read(memory, now=end), end, apart=everyone).kept) == 3


def test_the_memory_is_the_same_as_long_as_nothing_happens() -> None:
    later = NOW + timedelta(minutes=1)
    assert read(seen(), ON_ITS_WAY, now=later).records((), (), later) == seen()
    memory, _ = failed()
    assert read(memory, now=later).records((), (), later) == memory
