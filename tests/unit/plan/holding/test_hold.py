"""Which nodes are protected and which are handed back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.changes import Outcome
from reconciler.model.nodes import (
    DO_NOT_DISRUPT,
    HELD_TAINT,
    INITIALIZED_LABEL,
    SCARCE_TAINTS,
    DisruptionBudget,
    NodePool,
    hold_annotations,
)
from reconciler.model.placement import OccupiedBin
from reconciler.model.provisioning_requests import reserved_taint
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Departure
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins
from reconciler.plan.holding.consolidation import candidates
from reconciler.plan.holding.hold import Holds, holds, releases
from tests.builders import node, node_pool, pod
from tests.fakes.embedded import Sandbox, node_ref
from tests.unit.plan.worlds import (
    A_PERSONS,
    HELD,
    HOLDS_ONE,
    NOW,
    chunks,
    claim,
    occupied,
    pool_node,
    together,
    waiting_pod,
    with_node,
)

NEVER = node_pool(consolidate_after=None, budgets=(DisruptionBudget("100%"),))


def held(
    view: ClusterView,
    places: tuple[OccupiedBin, ...] = (),
    *,
    pool: NodePool | None = None,
    leaving: frozenset[str] = frozenset(),
    blocked: bool = False,
) -> Holds:
    pool = pool or node_pool()
    return holds(
        all_bins(view, places),
        now=NOW,
        node_pools={pool.name: pool},
        leaving=leaving,
        price_of=lambda _: None,
        blocked=blocked,
    )


def test_a_node_that_holds_chunks_is_protected_with_its_node_claim() -> None:
    (action,) = held(with_node("node-1"), occupied(node_1=[chunks(3)])).hold
    assert (action.node, action.node_claim, action.node_pool) == ("node-1", "claim-of-node-1", "general")
    assert action.reason == "holds 3 of CapacityBuffer/shop/web"
    assert action.holdings == (chunks(3),)


ONE_CHUNK, A_POD_COMES = occupied(node_1=[chunks()]), occupied(node_1=[waiting_pod()])
DISRUPTED = pool_node(annotations=HELD, taints=[Taint("karpenter.sh/disrupted", "", "NoSchedule")])
TWINS = tuple(
    claim(name, node_name=node_name, annotations=HOLDS_ONE, provider_id="test://node-1")
    for name, node_name in (("claim-of-node-1", "node-1"), ("twin", None))
)
LEFT_ALONE: dict[str, tuple[ClusterView, tuple[OccupiedBin, ...]]] = {
    "protected already": (with_node("node-1", HOLDS_ONE), ONE_CHUNK),
    "protected by a person": (with_node("node-1", A_PERSONS), ONE_CHUNK),
    "a person's, and empty": (with_node("node-1", A_PERSONS), ()),
    "not Karpenter's": (ClusterView(nodes=(node("node-1", pool=None),)), ONE_CHUNK),
    "held, and pending pods are about to use it": (with_node("node-1", HELD), A_POD_COMES),
    "free, and pending pods are about to use it": (with_node("node-1"), A_POD_COMES),
    "being deleted": (with_node("node-1", HELD, deleting=True), ()),
    "being deleted with chunks on it": (with_node("node-1", HELD, deleting=True), ONE_CHUNK),
    "being disrupted": (replace(with_node("node-1", HELD), nodes=(DISRUPTED,)), ()),
    "being disrupted with chunks on it": (replace(with_node("node-1", HELD), nodes=(DISRUPTED,)), ONE_CHUNK),
}


@pytest.mark.parametrize(("view", "places"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_neither_held_nor_released(view: ClusterView, places: tuple[OccupiedBin, ...]) -> None:
    assert held(view, places) == Holds()


@pytest.mark.parametrize(
    ("on_node", "on_claim"),
    [(HELD, {}), ({}, HELD), ({"headroom.dev/held": "true"}, HELD), (HELD, {"headroom.dev/held": "true"})],
)
def test_a_protection_that_was_cut_short_is_completed(on_node: Mapping[str, str], on_claim: Mapping[str, str]) -> None:
    view = ClusterView(nodes=(pool_node(annotations=on_node),), node_claims=(claim(annotations=on_claim),))
    (action,) = held(view, occupied(node_1=[chunks()])).hold
    assert (action.node, action.node_claim) == ("node-1", "general-x")


@pytest.mark.parametrize("annotations", [HELD, HOLDS_ONE])
def test_what_a_protected_node_holds_is_written_where_the_next_pass_reads_it(annotations: dict[str, str]) -> None:
    (action,) = held(with_node("node-1", annotations), occupied(node_1=[chunks(2)])).hold
    assert (action.node, action.node_claim, action.holdings) == ("node-1", None, (chunks(2),))
    view = ClusterView(node_claims=(claim(node_name=None, annotations=annotations),))
    (action,) = held(view, (OccupiedBin(None, "general-x", (chunks(2),)),)).hold
    assert (action.node, action.node_claim) == (None, "general-x")


def test_pods_are_kept_from_moving_in_once_the_node_is_there() -> None:
    """Karpenter would empty other nodes into the chunks' room, again and again."""
    view = with_node("node-1", HOLDS_ONE)
    open_to_all = replace(view, nodes=tuple(replace(item, taints=()) for item in view.nodes))
    (action,) = held(open_to_all, occupied(node_1=[chunks()])).hold
    assert (action.node, action.node_claim) == ("node-1", None)
    arriving = replace(
        open_to_all,
        nodes=tuple(
            replace(item, labels=tuple(pair for pair in item.labels if pair[0] != INITIALIZED_LABEL))
            for item in open_to_all.nodes
        ),
    )
    assert held(arriving, occupied(node_1=[chunks()])) == Holds()


def test_a_node_claim_on_its_way_is_a_bin_like_any() -> None:
    view = ClusterView(node_claims=(claim(node_name=None),))
    (action,) = held(view, (OccupiedBin(None, "general-x", (chunks(),)),)).hold
    assert (action.node, action.node_claim) == (None, "general-x")


def test_a_node_that_holds_nothing_any_more_is_released_on_both_sides() -> None:
    (action,) = held(with_node("node-1", HELD)).release
    assert (action.node, action.node_claim) == ("node-1", "claim-of-node-1")


@pytest.mark.parametrize(
    ("on_node", "on_claim", "released"), [(A_PERSONS, HELD, (None, "general-x")), (HELD, A_PERSONS, ("node-1", None))]
)
def test_only_the_sides_with_headrooms_mark_are_released(
    on_node: Mapping[str, str], on_claim: Mapping[str, str], released: tuple[str | None, str | None]
) -> None:
    view = ClusterView(nodes=(pool_node(annotations=on_node),), node_claims=(claim(annotations=on_claim),))
    (action,) = held(view).release
    assert (action.node, action.node_claim) == released


def test_nothing_is_released_while_the_plan_is_blocked() -> None:
    answer = held(together(with_node("node-1", HELD), with_node("node-2")), occupied(node_2=[chunks()]), blocked=True)
    assert [action.node for action in answer.hold] == ["node-2"]
    assert (answer.release, answer.delete) == ((), ())
    assert answer.notes == ("The release of 1 node waits",)


def test_a_replaced_node_stays_protected_until_its_successor_is_there() -> None:
    waiting = held(with_node("node-1", HELD), leaving=frozenset({"node-1"}))
    assert waiting.release == ()
    assert "node-1 stays protected" in waiting.notes[0]
    assert held(with_node("node-1", HELD)).release[0].node == "node-1"


NO_PLACEHOLDER = replace(with_node("node-1", placeholder=False), nodes=(node("node-1"),))
IN_A_POOL_THAT_NEVER_CONSOLIDATES: dict[str, tuple[ClusterView, tuple[OccupiedBin, ...], list[str]]] = {
    "an empty placeholder goes": (with_node("node-1", HELD), (), ["claim-of-node-1"]),
    "also one that was released before": (with_node("node-1"), (), ["claim-of-node-1"]),
    "daemons do not keep it": (
        replace(with_node("node-1"), pods=(pod(node="node-1", owner_kind="DaemonSet"),)), (), ["claim-of-node-1"]
    ),
    "pods do": (replace(with_node("node-1"), pods=(pod(node="node-1"),)), (), []),
    "chunks do": (with_node("node-1"), ONE_CHUNK, []),
    "a person does": (with_node("node-1", A_PERSONS), (), []),
    "a node that is no placeholder stays": (NO_PLACEHOLDER, (), []),
    "a second NodeClaim of a machine that holds chunks is no empty machine": (
        replace(with_node("node-1", HOLDS_ONE), node_claims=TWINS), ONE_CHUNK, []
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("view", "places", "gone"),
    IN_A_POOL_THAT_NEVER_CONSOLIDATES.values(),
    ids=IN_A_POOL_THAT_NEVER_CONSOLIDATES,
)
def test_which_placeholders_are_deleted(view: ClusterView, places: tuple[OccupiedBin, ...], gone: list[str]) -> None:
    answer = held(view, places, pool=NEVER)
    assert ([action.node_claim for action in answer.delete], answer.release) == (gone, ())


def test_deletions_stay_within_the_empty_budget_and_the_rest_is_released() -> None:
    view = together(*(with_node(f"node-{index}", HELD) for index in range(5)))
    answer = held(view, pool=replace(NEVER, budgets=(DisruptionBudget("40%", ("Empty",)),)))
    assert [action.node for action in answer.delete] == ["node-0", "node-1"]
    assert [action.node for action in answer.release] == ["node-2", "node-3", "node-4"]


# Which held nodes may be left while another one of their NodePool is on its way out.

LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("seconds", "may_be_left"),
    [(599, False), (600, True)],
    ids=["a node is being left", "Karpenter has not taken it for ten minutes"],
)
def test_another_node_waits_for_it_and_not_for_ever(seconds: int, *, may_be_left: bool) -> None:
    view = together(with_node("node-1", HELD), with_node("node-2"))
    since = LATER - timedelta(seconds=seconds)
    known = Departure("node-2", since, since + timedelta(minutes=30), 0.1)
    found, next_look = candidates(
        *(all_bins(view, occupied(node_1=[chunks()])), [node_pool()], view, LATER),
        staying=(),
        known=[known],
        price_of=lambda item: 0.2 if item.chunks else None,
        pods={},
    )
    assert [item.bin.name for item in found] == (["node-1"] if may_be_left else [])
    assert (next_look is None) == may_be_left


# Every held node is handed back when headroom leaves, and nothing else is touched.

GONE = tuple((taint, False) for taint in (HELD_TAINT, *SCARCE_TAINTS))


def test_placeholders_and_nodes_that_were_there_before_are_released() -> None:
    view = together(
        with_node("node-1", HELD),
        ClusterView(nodes=(pool_node("before", annotations=HELD),)),
        with_node("persons", {DO_NOT_DISRUPT: "true"}),
        with_node("free"),
    )
    found = releases(view)
    assert [str(write.ref) for write in found] == ["NodeClaim/claim-of-node-1", "Node/before", "Node/node-1"]
    assert [write.taints for write in found] == [(), GONE, GONE]
    assert {write.annotations for write in found} == {hold_annotations("")}


def test_a_reserved_node_is_everybodys_afterwards_also_one_that_is_not_held() -> None:
    taint = reserved_taint(ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train"))
    reserved = pool_node("reserved", annotations=HELD)
    left = pool_node("left")
    view = ClusterView(nodes=tuple(replace(node, taints=(taint,)) for node in (reserved, left)))
    assert {write.ref.name: write.taints for write in releases(view)} == {
        "reserved": (*GONE, (taint, False)),
        "left": ((taint, False),),
    }


def test_a_cluster_that_was_released_has_nothing_left_to_release() -> None:
    sandbox = Sandbox()
    sandbox.add_node("general-1")
    (name,) = sandbox.node_names()
    for write in releases(with_node(name, HELD)):
        held = hold_annotations("2 of CapacityBuffer/shop/web")
        sandbox.write(replace(write, annotations=held, taints=tuple((taint, True) for taint, _ in write.taints)))
    view = sandbox.wait()
    assert HELD_TAINT in sandbox.node(name).taints
    assert sandbox.node(name).annotation(DO_NOT_DISRUPT) == "true"
    results = [sandbox.write(write) for write in releases(view)]
    assert Outcome.APPLIED in {result.outcome for result in results}
    assert releases(sandbox.wait()) == ()
    assert HELD_TAINT not in sandbox.node(name).taints
    body = sandbox.cluster.live(node_ref(name))
    left = {key for key in body["metadata"].get("annotations", {}) if key == DO_NOT_DISRUPT or "headroom" in key}
    assert left == set(), "what the daemon writes when it holds a node"
