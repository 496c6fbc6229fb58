"""Caps cut a plan from its least important end."""

from __future__ import annotations

from reconciler.model.placement import PlannedNode
from reconciler.plan.limits import Capped, PlanCaps, cap_notes, within_caps
from tests.builders import buffer_ref
from tests.unit.plan.worlds import chunks, planned, waiting_pod

ORDER = {buffer_ref("first"): 0, buffer_ref("second"): 1, buffer_ref("third"): 2}
FIRST, SECOND, THIRD = (planned(chunks(1, name)) for name in ("first", "second", "third"))


def capped(
    *nodes: PlannedNode,
    price_now: float = 0.0,
    nodes_now: dict[str, int] | None = None,
    **caps: float,
) -> Capped:
    limits = PlanCaps(**{"new_nodes_per_pass": 0, **caps})  # type: ignore[arg-type]
    return within_caps(nodes, limits, order=ORDER, price_now=price_now, nodes_now=nodes_now or {})


def test_no_cap_is_no_cap() -> None:
    assert capped(THIRD, FIRST, SECOND) == Capped((THIRD, FIRST, SECOND))


def test_the_number_of_new_nodes_is_capped_by_the_demands_order() -> None:
    answer = capped(THIRD, FIRST, SECOND, new_nodes_per_pass=2)
    assert answer.kept == (FIRST, SECOND)
    assert [cut.node for cut in answer.cuts] == [THIRD]
    assert cap_notes(answer.cuts) == (
        "1 node waits for a later pass: at most 2 nodes made in a pass (caps.newNodesPerPass)",
    )


def test_a_node_ranks_by_the_first_demand_that_it_serves() -> None:
    shared = planned(chunks(1, "third"), chunks(1, "first"))
    assert capped(SECOND, shared, new_nodes_per_pass=1).kept == (shared,)


def test_the_price_counts_what_is_there_already() -> None:
    dear = planned(chunks(1, "second"), price=2.0)
    assert capped(FIRST, price_now=9.9, price_per_hour=10).kept == ()
    assert capped(FIRST, price_now=9.8, price_per_hour=10).kept == (FIRST,)
    assert cap_notes(capped(FIRST, price_now=9.9, price_per_hour=10).cuts) == (
        "1 node is not made: at most $10.00 an hour for all nodes (caps.pricePerHour)",
    )
    # A cheaper node of lower rank does not slip past a dearer one that was refused.
    assert capped(FIRST, dear, THIRD, price_per_hour=1).kept == (FIRST,)


def test_a_full_pool_stops_only_its_own_nodes() -> None:
    elsewhere = planned(chunks(1, "third"), pool="batch")
    answer = capped(FIRST, SECOND, elsewhere, nodes_now={"general": 4}, nodes_per_pool=5)
    assert answer.kept == (FIRST, elsewhere)
    assert cap_notes(answer.cuts) == ("1 node is not made: at most 5 nodes in NodePool general (caps.nodesPerPool)",)


def test_nodes_for_pending_pods_are_karpenters_and_only_looked_at() -> None:
    theirs = planned(waiting_pod())
    assert capped(theirs, theirs, FIRST, new_nodes_per_pass=1).kept == (theirs, theirs, FIRST)
