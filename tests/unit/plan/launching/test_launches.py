"""NodeClaims that are made or not: their names, and what is said of launches that gave no node."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.buffers import Fulfilment
from reconciler.model.declared import Declared
from reconciler.model.remembered import Inventory
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import LONGEST, creations, made_by_others, maker_of
from reconciler.plan.facts import Facts
from reconciler.plan.launching.back_offs import (
    LAUNCHES_KEY,
    BackOff,
    Launch,
    LaunchRecord,
    Offered,
    launch_record,
    stock_outs,
    without_launches,
)
from reconciler.plan.plan import make_plan
from tests.builders import demand, instance_type, node_pool
from tests.unit.plan.worlds import NOW, chunks, planned

NATIVE, BALLOON = Fulfilment.NATIVE, Fulfilment.BALLOON


def names(*nodes: object, taken: tuple[str, ...] = ()) -> list[str]:
    return [creation.name for creation in creations(nodes, taken)]  # type: ignore[arg-type]


def test_the_same_wish_has_the_same_name() -> None:
    assert names(planned()) == names(planned())
    assert re.fullmatch(r"general-headroom-[0-9a-f]{10}", names(planned())[0])


def test_equal_wishes_have_names_of_their_own() -> None:
    assert len(set(names(planned(), planned(), planned()))) == 3


def test_what_it_will_hold_is_not_part_of_the_name_and_what_it_is_made_of_is() -> None:
    base = names(planned(chunks(1)))
    assert names(planned(chunks(3, "db"))) == base
    others = [
        planned(instance_types=("m-8x",)),
        planned(pool="batch"),
        replace(planned(), zones=("zone-a",)),
        replace(planned(), capacity_types=("spot",)),
        replace(planned(), labels=(("team", "a"),)),
        replace(planned(), requirements=()),
        replace(planned(), requests=planned().requests * 2),
    ]
    assert len({names(other)[0] for other in others} | set(base)) == len(others) + 1


def test_after_a_pass_that_was_cut_short_only_what_is_missing_is_asked_for() -> None:
    first, second, third = names(planned(), planned(), planned())
    # One was made and is now a bin, so that placement asks for two more.
    assert names(planned(), planned(), taken=(first,)) == [second, third]
    # It was made and is not seen yet: the very same objects are asked for again.
    assert names(planned(), planned(), planned()) == [first, second, third]


def test_names_fit_into_a_label() -> None:
    long = "a" * 42 + ".b" * 60
    (name,) = names(planned(pool=long))
    assert len(name) <= LONGEST
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name)
    assert ".-" not in name


def test_a_node_is_made_by_all_whom_its_demands_rely_on_and_by_headroom_if_one_relies_on_nobody() -> None:
    native, balloon = (demand(name, fulfilment=kind) for name, kind in (("a", NATIVE), ("b", BALLOON)))
    both, with_own = planned(chunks(1, "a"), chunks(1, "b")), planned(chunks(1, "a"), chunks(1, "web"))
    made = made_by_others(creations([both, with_own], ()), [native, balloon, demand("web")])
    assert [item.made_by for item in made] == [f"{maker_of(native)} and {maker_of(balloon)}", ""]


def test_the_reason_says_what_it_is_for() -> None:
    (creation,) = creations([planned(chunks(2), chunks(1, "db"))], ())
    assert creation.reason == "for 1 of CapacityBuffer/shop/db and 2 of CapacityBuffer/shop/web"


# What is said of a launch that gave no node, by what comes of its chunks.

OFFERED = Offered(("m-4x",), ("zone-a",), ("on-demand",))
VANISHED = LaunchRecord(
    back_offs=(BackOff(OFFERED, 1, NOW, NOW + PlacementRules().back_off),),
    vanished={"general-x": Launch(OFFERED, NOW, "1 of CapacityBuffer/shop/web")},
)


def test_without_another_node_the_next_try_is_named() -> None:
    (missed,) = stock_outs(VANISHED, [demand("web")], (), NOW)
    where = "m-4x in zone-a as on-demand"
    assert missed.message == f"NodeClaim general-x gave no node ({where}): may be tried again at 12:03:00 UTC"


# A NodeClaim that had to wait for its pool was never made, so that it cannot have vanished.

TODAY = datetime(2026, 11, 21, tzinfo=UTC)


def test_what_was_not_asked_for_is_not_remembered() -> None:
    demands, types, pools = (demand(count=3),), (instance_type(),), (node_pool(),)
    placement = place(Problem(ClusterView(), pools, types, demands))
    plan = make_plan(
        Facts(TODAY, effective=Declared(node_pools=pools), instance_types=types, demands=demands, placement=placement)
    )
    (creation,) = plan.node_claims.create
    assert creation.name in plan.records[LAUNCHES_KEY]
    left = without_launches(plan.records, [creation.name])
    assert LAUNCHES_KEY not in left
    record = launch_record(ClusterView(inventory=Inventory(records=left)), TODAY, PlacementRules())
    assert record.vanished == {}
    assert launch_record(ClusterView(inventory=Inventory(records=plan.records)), TODAY, PlacementRules()).vanished
