"""What becomes of each demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import Cost, DemandOutcome, NodeClaimAction, NodeClaimChanges, PendingOutcome
from reconciler.model.demand import Demand
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, ZONE_LABEL, Offering
from reconciler.model.placement import Cause, OccupiedBin, PlannedNode, Unplaced, UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins, creations
from reconciler.plan.cost import Prices, cost_of
from reconciler.plan.launching.caps import Cut
from reconciler.plan.outcomes import Tallies, pending_outcome
from tests.builders import buffer_ref, demand, instance_type, node, one_of, pod
from tests.unit.plan.worlds import chunks, claim, occupied, planned, pool_node, together, waiting_pod, with_node

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
UNKNOWN = (("Launched", "Unknown"),)
HERE = ClusterView(nodes=(node("node-1"),), node_claims=(claim("on-its-way", node_name=None),))


def outcome(
    item: Demand,
    *,
    places: tuple[OccupiedBin, ...] = (),
    new: Iterable[PlannedNode] = (),
    unplaced: tuple[Unplaced, ...] = (),
    cuts: tuple[Cut, ...] = (),
) -> DemandOutcome:
    return Tallies(all_bins(HERE, places), creations(new, ()), unplaced, cuts).outcome(item)


def provisioning(answer: DemandOutcome) -> tuple[str, str, str]:
    (condition,) = [item for item in answer.conditions if item.type == "Provisioning"]
    return condition.status, condition.reason, condition.message


FITS = ("True", "FitsExistingCapacity")
SAYS = {
    "all have room": (outcome(demand(count=3), places=occupied(node_1=[chunks(3)])), (*FITS, "all 3 chunks have room")),
    "the only one has": (outcome(demand(count=1), places=occupied(node_1=[chunks(1)])), (*FITS, "the 1 chunk has room")),
    "the only one has none": (
        outcome(demand(count=1), unplaced=(Unplaced(demand().ref, 0, 1, ()),)),
        ("False", "RequiresNewCapacity", "of 1 chunk, 1 without a place"),
    ),
    "nothing is asked for": (outcome(demand(count=0)), ("False", "BufferEmpty", "the buffer asks for nothing")),
    "its own pods fill a dedicated one": (
        outcome(demand(count=0, filled=3)), (*FITS, "its own pods fill all 3 chunks")
    ),
    "it is not known what is asked for": (
        outcome(Demand(buffer_ref())), ("False", "NotReadyForProvisioning", "the buffer is not ready")
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "said"), SAYS.values(), ids=SAYS)
def test_what_a_buffer_says_of_its_chunks(answer: DemandOutcome, said: tuple[str, str, str]) -> None:
    assert provisioning(answer) == said


def test_new_and_missing_places_are_counted() -> None:
    missing = (
        Unplaced(
            buffer_ref(),
            0,
            1,
            (UnplacedReason(Cause.NODE_TOO_SMALL, 4, "cpu"), UnplacedReason(Cause.NODE_TAINTS, 9, "gpu")),
        ),
        Unplaced(buffer_ref(), 1, 2, (UnplacedReason(Cause.NODE_TOO_SMALL, 6, "memory"),)),
    )
    answer = outcome(demand(count=6), places=occupied(node_1=[chunks(1)]), new=[planned(chunks(2))], unplaced=missing)
    assert (answer.on_existing, answer.on_new, answer.unplaced) == (1, 2, 3)
    assert answer.unplaced_reasons == (
        UnplacedReason(Cause.NODE_TAINTS, 9, "gpu"),
        UnplacedReason(Cause.NODE_TOO_SMALL, 6, "memory"),
        UnplacedReason(Cause.NODE_TOO_SMALL, 4, "cpu"),
    )
    assert [item.chunks for item in answer.unplaced_reasons] == [1, 2, 1]
    assert provisioning(answer) == (
        "False",
        "RequiresNewCapacity",
        "of 6 chunks, 2 on nodes that are on their way, 3 without a place",
    )


def test_a_node_that_could_not_be_launched_is_named() -> None:
    """It was one on its way among others, for as long as Karpenter tried."""
    failing = replace(claim("failing", node_name=None), launch_failure="no subnet has a free address")
    bins = all_bins(ClusterView(node_claims=(failing,)), (OccupiedBin(None, "failing", (chunks(2),)),))
    assert provisioning(Tallies(bins, (), (), ()).outcome(demand(count=2)))[2] == (
        "of 2 chunks, 2 on nodes that are on their way; "
        "Karpenter could not launch NodeClaim failing: its condition Launched says why"
    )


@pytest.mark.parametrize(("seconds", "conditions", "is_told"), [(61, (), True), (59, (), False), (61, UNKNOWN, False)])
def test_a_node_that_karpenter_does_not_look_at_is_named(
    seconds: int,
    conditions: tuple[tuple[str, str], ...],
    is_told: bool,  # noqa: FBT001 - the case
) -> None:
    """Karpenter may be down for hours, and all of its nodes were on their way."""
    waiting = replace(claim("waiting", node_name=None), created=NOON, conditions=conditions)
    bins = all_bins(ClusterView(node_claims=(waiting,)), (OccupiedBin(None, "waiting", (chunks(2),)),))
    tallies = Tallies(bins, (), (), (), now=NOON + timedelta(seconds=seconds))
    words = "; Karpenter has not looked at NodeClaim waiting yet: does it run?" if is_told else ""
    assert provisioning(tallies.outcome(demand(count=2)))[2] == f"of 2 chunks, 2 on nodes that are on their way{words}"


def test_groups_of_a_demand_that_say_the_same_say_it_once() -> None:
    same = (UnplacedReason(Cause.NODE_FULL, 2, "node-1 lacks 1 CPU"),)
    missing = (Unplaced(buffer_ref(), 0, 1, same), Unplaced(buffer_ref(), 1, 1, same))
    told = outcome(demand(count=2), unplaced=missing).unplaced_reasons
    assert told == same
    assert [item.chunks for item in told] == [2]


def test_of_many_sentences_with_one_reason_the_last_shown_counts_for_the_rest() -> None:
    many = tuple(UnplacedReason(Cause.AT_LIMIT, 1, f"NodePool {name} is at its limit") for name in "abcdefg")
    found = outcome(demand(count=1), unplaced=(Unplaced(buffer_ref(), 0, 1, many),)).unplaced_reasons
    assert [(item.example, item.count) for item in found] == [
        ("NodePool e is at its limit", 3),
        *((f"NodePool {name} is at its limit", 1) for name in "abcd"),
    ]


def test_headroom_says_nothing_on_capacity_that_others_keep() -> None:
    native = demand(count=3, groups=(), fulfilment=Fulfilment.NATIVE, holds_nodes=False)
    assert outcome(native).conditions == ()


def test_pending_pods_are_summed_up() -> None:
    pods = [Demand(ObjectRef("", "Pod", "shop", name), desired=1) for name in ("here", "new", "nowhere")]
    tallies = Tallies(
        all_bins(HERE, occupied(node_1=[waiting_pod("here")])),
        creations([planned(waiting_pod("new"))], ()),
        (Unplaced(pods[2].ref, 0, 1, ()),),
        (),
    )
    outcomes = [tallies.outcome(item) for item in pods]
    assert pending_outcome(outcomes) == PendingOutcome(1, 1, 1)
    assert all(item.conditions == () for item in outcomes)


# What the cluster costs before and after.

CATALOG = (instance_type("m-4x", price=0.2, capacity_types=("on-demand", "spot")), instance_type("m-8x", price=0.4))


def cost(view: ClusterView, *, created: int = 0, deleted: Iterable[str] = (), released: Iterable[str] = ()) -> Cost:
    def actions(names: Iterable[str]) -> tuple[NodeClaimAction, ...]:
        return tuple(NodeClaimAction(f"claim-of-{name}", name, "general", "") for name in names)

    return cost_of(
        all_bins(view),
        Prices(CATALOG),
        NodeClaimChanges(
            tuple(creations([planned(price=0.3)] * created, ())), delete=actions(deleted), release=actions(released)
        ),
        assumptions=("prices of a test",),
    )


SPOT = "spot prices are those of the price source; they change"
THREE = ClusterView(nodes=(pool_node("a"), pool_node("b", capacity_type="spot"), node("c", instance_type="m-8x")))
IN_USE = replace(with_node("a"), pods=(pod(node="a"),))
KARPENTERS = ClusterView(nodes=(node("a"),), node_claims=(claim("claim-of-a", node_name="a", placeholder=False),))
COSTS: dict[str, tuple[Cost, float, float, tuple[str, ...]]] = {
    "nodes cost what their labels say": (cost(THREE), 0.7, 0.7, (SPOT,)),
    "new ones are added at their planned price, and deleted ones go": (
        cost(together(with_node("a"), with_node("b")), created=2, deleted=["a"]), 0.4, 0.8, ()
    ),
    "empty placeholders that are released count as gone": (
        cost(with_node("a"), released=["a"]), 0.2, 0.0,
        ("1 node released and empty: counted as gone, paid for until Karpenter removes it",),
    ),
    "those that pods use stay": (cost(IN_USE, released=["a"]), 0.2, 0.2, ()),
    "and so do Karpenter's own": (cost(KARPENTERS, released=["a"]), 0.2, 0.2, ()),
    "what is on its way out counts only before": (
        cost(with_node("a", deleting=True)), 0.2, 0.0, ("1 node already on the way out: counted before, not after",)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "before", "after", "assumptions"), COSTS.values(), ids=COSTS)
def test_what_a_cluster_costs(found: Cost, before: float, after: float, assumptions: tuple[str, ...]) -> None:
    assert (found.per_hour_before, found.per_hour_after) == pytest.approx((before, after))
    assert found.assumptions == ("prices of a test", *assumptions)


def test_labels_that_leave_one_price_open_are_enough() -> None:
    kind = replace(CATALOG[1], offerings=(Offering("zone-a", "on-demand", 0.4), Offering("zone-b", "on-demand", 0.5)))
    bare = claim(node_name=None, labels={INSTANCE_TYPE_LABEL: "m-8x"})
    zoned = claim(node_name=None, labels={INSTANCE_TYPE_LABEL: "m-8x", ZONE_LABEL: "zone-b"})
    prices = Prices([kind])
    (first,), (second,) = (all_bins(ClusterView(node_claims=(item,))) for item in (bare, zoned))
    assert prices.of(first) is None
    assert prices.of(second) == 0.5


def test_a_node_on_its_way_costs_the_cheapest_of_what_it_asks_for() -> None:
    asked = (
        one_of(INSTANCE_TYPE_LABEL, "m-8x", "m-4x"),
        one_of("karpenter.sh/capacity-type", "on-demand"),
    )
    (item,) = all_bins(ClusterView(node_claims=(claim(node_name=None, requirements=asked),)))
    assert Prices(CATALOG).of(item) == 0.2
