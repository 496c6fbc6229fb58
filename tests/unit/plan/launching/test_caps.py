"""Caps cut a plan from its least important end."""

from __future__ import annotations

from reconciler.model.placement import PlannedNode
from reconciler.model.refs import ObjectRef
from reconciler.model.rules import Caps
from reconciler.plan.launching.caps import MOST_IN_A_WAVE, Capped, Standing, cap_notes, within_caps
from tests.builders import buffer_ref
from tests.unit.plan.worlds import chunks, planned, waiting_pod

ORDER = {buffer_ref("first"): 0, buffer_ref("second"): 1, buffer_ref("third"): 2}
FIRST, SECOND, THIRD = (planned(chunks(1, name)) for name in ("first", "second", "third"))


def capped(
    *nodes: PlannedNode,
    price_now: float = 0.0,
    nodes_now: dict[str, int] | None = None,
    made_now: dict[ObjectRef, int] | None = None,
    whole: tuple[ObjectRef, ...] = (),
    **caps: float,
) -> Capped:
    limits = Caps(**{"new_nodes_per_pass": 0, **caps})  # type: ignore[arg-type]
    standing = Standing(price_now, nodes_now or {}, made_now or {})
    return within_caps(nodes, limits, standing, order=ORDER, whole=whole)


def test_the_number_of_new_nodes_is_capped_by_the_demands_order() -> None:
    answer = capped(THIRD, FIRST, SECOND, new_nodes_per_pass=2)
    assert answer.kept == (FIRST, SECOND)
    assert [cut.node for cut in answer.cuts] == [THIRD]
    assert cap_notes(answer) == (
        "1 node waits for a later pass: at most 2 nodes made in a pass (caps.newNodesPerPass)",
    )


def test_a_node_ranks_by_the_first_demand_that_it_serves() -> None:
    shared = planned(chunks(1, "third"), chunks(1, "first"))
    assert capped(SECOND, shared, new_nodes_per_pass=1).kept == (shared,)
    most = planned(chunks(3, "first"))
    assert capped(shared, most, new_nodes_per_pass=1).kept == (most,), "which holds most of it"
    more = planned(chunks(3, "first"), chunks(2, "second"))
    assert capped(more, most, new_nodes_per_pass=1).kept == (more,), "and more of the next"


def test_the_price_counts_what_is_there_already() -> None:
    dear = planned(chunks(1, "second"), price=2.0)
    assert capped(FIRST, price_now=9.9, price_per_hour=10).kept == ()
    assert capped(FIRST, price_now=9.8, price_per_hour=10).kept == (FIRST,)
    assert cap_notes(capped(FIRST, price_now=9.9, price_per_hour=10)) == (
        "1 node is not made: at most $10.00 an hour for all nodes (caps.pricePerHour)",
    )
    # A cheaper node of lower rank does not slip past a dearer one that was refused.
    assert capped(FIRST, dear, THIRD, price_per_hour=1).kept == (FIRST,)


def test_as_many_nodes_as_the_price_pays_for_are_made() -> None:
    """Added up as binary numbers, prices come to a little more than they are."""
    for cents in range(1, 100):
        for count in (3, 6, 7, 10):
            nodes = [planned(chunks(1, "first"), price=cents / 100)] * (count + 1)
            assert len(capped(*nodes, price_per_hour=cents * count / 100).kept) == count


def test_a_share_of_what_is_there_is_as_written() -> None:
    shares = [(percent, Caps(prune_share=percent / 100, prune_objects_at_least=0)) for percent in range(101)]
    assert all(caps.most_objects(count) == percent * count // 100 for percent, caps in shares for count in range(101))


def test_a_full_pool_stops_only_its_own_nodes() -> None:
    elsewhere = planned(chunks(1, "third"), pool="batch")
    answer = capped(FIRST, SECOND, elsewhere, nodes_now={"general": 4}, nodes_per_pool=5)
    assert answer.kept == (FIRST, elsewhere)
    assert cap_notes(answer) == ("1 node is not made: at most 5 nodes in NodePool general (caps.nodesPerPool)",)


def test_nodes_for_pending_pods_are_karpenters_and_only_looked_at() -> None:
    theirs = planned(waiting_pod())
    assert capped(theirs, theirs, FIRST, new_nodes_per_pass=1).kept == (theirs, theirs, FIRST)


class TestDemandsThatArePlacedAsAWhole:
    """SECOND needs two nodes."""

    TWO = (planned(chunks(2, "second"), price=0.2), planned(chunks(1, "second"), price=0.1))
    WHOLE = (buffer_ref("second"), buffer_ref("third"))

    def test_all_of_its_nodes_are_cut_where_one_is(self) -> None:
        answer = capped(FIRST, *self.TWO, new_nodes_per_pass=2, whole=self.WHOLE)
        assert answer.kept == (FIRST,)
        assert [cut.node for cut in answer.cuts] == [*self.TWO]

    def test_in_a_pass_of_its_own_it_gets_more_than_a_pass_may_make(self) -> None:
        answer = capped(*self.TWO, THIRD, new_nodes_per_pass=1, whole=self.WHOLE)
        assert answer.kept == self.TWO
        assert [cut.node for cut in answer.cuts] == [THIRD]

    def test_a_pool_without_room_for_all_of_it_gets_none(self) -> None:
        assert capped(*self.TWO, nodes_per_pool=3, nodes_now={"general": 2}, whole=self.WHOLE).kept == ()

    def test_its_price_counts_as_one(self) -> None:
        assert capped(*self.TWO, price_per_hour=0.2, whole=self.WHOLE).kept == ()

    def test_it_has_a_cap_of_its_own_over_all_passes_of_an_attempt(self) -> None:
        made = {buffer_ref("second"): 1}
        assert capped(*self.TWO, nodes_per_request=3, made_now=made, whole=self.WHOLE).kept == self.TWO
        assert capped(*self.TWO, nodes_per_request=2, made_now=made, whole=self.WHOLE).kept == ()

    def test_what_shares_a_node_shares_its_fate(self) -> None:
        shared = planned(chunks(1, "second"), chunks(1, "third"))
        assert capped(self.TWO[0], shared, THIRD, nodes_per_request=1, whole=self.WHOLE).kept == ()

    def test_many_come_in_waves(self) -> None:
        nodes = [planned(chunks(1, "second"))] * (MOST_IN_A_WAVE + 1)
        answer = capped(*nodes, nodes_per_request=0, whole=self.WHOLE)
        assert (len(answer.kept), len(answer.later), answer.cuts) == (MOST_IN_A_WAVE, 1, ())


class TestOfRequestsThatAreBeyondACap:
    """Those that are placed anew without new nodes. The first shares a node with the second, and the second one with the third."""

    WHOLE = tuple(ORDER)
    CHAIN = (
        planned(chunks(1, "first"), chunks(1, "second")),
        planned(chunks(1, "second"), chunks(1, "third"), pool="batch"),
    )

    def refused(self, **options: object) -> set[str]:
        return {ref.name for ref in capped(*self.CHAIN, whole=self.WHOLE, **options).refused}  # type: ignore[arg-type]

    def test_none_is_where_a_later_pass_makes_them(self) -> None:
        assert self.refused(new_nodes_per_pass=1, made_now={}) == set()
        assert capped(FIRST, *self.CHAIN, whole=self.WHOLE, new_nodes_per_pass=1).refused == frozenset()

    def test_those_that_are_too_large_are_and_those_beside_them_are_not(self) -> None:
        assert self.refused(nodes_per_request=1, made_now={buffer_ref("second"): 1}) == {"second"}

    def test_those_with_a_node_in_a_full_pool_are(self) -> None:
        assert self.refused(nodes_per_pool=1, nodes_now={"batch": 1}) == {"second", "third"}

    def test_where_some_may_be_made_the_last_are(self) -> None:
        assert self.refused(price_per_hour=0.25) == {"third"}
        assert self.refused(price_per_hour=0.05) == {"first", "second", "third"}
