"""The checker has each machine once: a node and the NodeClaim that it came of are one, whether or not the NodeClaim names it yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, Node, NodeClaim
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, shape

NODE = node("one", cpu="2", provider_id="aws:///zone-a/i-1")
CLAIM = NodeClaim(
    "claim",
    ((NODEPOOL_LABEL, "general"), (INSTANCE_TYPE_LABEL, "m-4x")),
    provider_id="aws:///zone-a/i-1",
    conditions=(("Launched", "True"),),
    allocatable=NODE.allocatable,
)
NAMED = replace(CLAIM, node_name="one", provider_id="")
YOUNG = replace(NODE, labels=tuple(item for item in NODE.labels if item[0] != INITIALIZED_LABEL))


def said(there: Node, claim: NodeClaim, *bins: tuple[str | None, str | None]) -> tuple[str, ...]:
    """What is said when a chunk is put into each of these bins."""
    asked = demand(count=len(bins), pod_shape=shape("1100m"))
    occupied = tuple(OccupiedBin(*names, (Holding(buffer_ref(), 0, 1),)) for names in bins)
    view = ClusterView(nodes=(there,), node_claims=(claim,))
    return violations(Problem(view, (node_pool(),), demands=(asked,)), Placement(occupied))


@pytest.mark.parametrize("claim", [CLAIM, NAMED], ids=["by the provider's ID", "by name"])
def test_a_node_claim_that_has_a_node_is_no_bin_of_its_own(claim: NodeClaim) -> None:
    assert said(NODE, claim, ("one", None)) == ()
    assert said(NODE, claim, ("one", None), (None, "claim")) == ("claim: there is no such bin",)


def test_machines_of_other_ids_are_two() -> None:
    other = replace(CLAIM, provider_id="aws:///zone-a/i-2")
    assert said(NODE, other, ("one", None), (None, "claim")) == ()


def test_a_machine_uses_up_limits_once() -> None:
    """16 CPUs: two nodes of 8, of which one is there."""
    pools, types = (node_pool(limits={"cpu": "16"}),), (instance_type("m-4x", cpu="8"),)
    asked = (demand(count=1, pod_shape=shape("5")),)
    placement = place(Problem(ClusterView(), pools, types, asked))
    there = replace(NODE, capacity=types[0].capacity)
    assert violations(Problem(ClusterView(nodes=(there,), node_claims=(CLAIM,)), pools, types, asked), placement) == ()
    apart = replace(CLAIM, provider_id="", capacity=types[0].capacity)
    (words,) = violations(Problem(ClusterView(nodes=(there,), node_claims=(apart,)), pools, types, asked), placement)
    assert words == "NodePool general: cpu exceeds its limit of 16000"


def test_a_node_that_comes_up_is_told_by_its_node_claim() -> None:
    """Which taints will go, and which resources it does not report yet."""
    startup = Taint("example.com/agent", "", "NoSchedule")
    tainted = replace(YOUNG, taints=(startup,))
    assert said(tainted, replace(CLAIM, startup_taints=(startup,)), ("one", None)) == ()
    assert said(tainted, CLAIM, ("one", None)) == ("one: a taint is not tolerated",)

    device = Resources.of({"example.com/gpu": 1})
    asked = demand(count=1, pod_shape=shape("100m", requests=shape("100m").requests + device))
    promised = replace(CLAIM, allocatable=CLAIM.allocatable + device)
    held = Placement((OccupiedBin("one", None, (Holding(buffer_ref(), 0, 1),)),))
    for there, words in ((YOUNG, ()), (NODE, ("one: example.com/gpu is overcommitted (1 of 0)",))):
        view = ClusterView(nodes=(there,), node_claims=(promised,))
        assert violations(Problem(view, (node_pool(),), demands=(asked,)), held) == words


# The checker finds chunks that are not alone on the nodes which are to be theirs alone.

TYPES = (instance_type("small", cpu="2"),)
EMPTY = ClusterView()
OWN = Taint("headroom.dev/reserved", "shop.train", "NoSchedule")
TOLERANT = shape(tolerations=(Toleration("headroom.dev/reserved", "Exists"),))
OTHER = buffer_ref("other")


def found(placement: Placement, *demands: Demand, view: ClusterView = EMPTY) -> tuple[str, ...]:
    return violations(Problem(view, (node_pool(),), TYPES, demands), placement)


def reserved_placement(*planned_taints: Taint, beside: bool = False) -> Placement:
    """One planned node with one chunk that has a taint of its own, or none; beside it one of another demand."""
    asked = demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN))
    placement = place(Problem(ClusterView(), (node_pool(),), TYPES, (asked,)))
    (planned,) = placement.planned
    more = (Holding(OTHER, 0, 1),) if beside else ()
    holdings = tuple(sorted((*planned.holdings, *more)))
    return replace(placement, planned=(replace(planned, taints=planned_taints, holdings=holdings),))


@pytest.mark.parametrize(
    ("taints", "beside", "words"),
    [
        ((OWN,), False, ""),
        ((), False, "others than those that the node is for"),
        ((replace(OWN, value="shop.tune"),), False, "others than those that the node is for"),
        ((OWN,), True, "others than those that the node is for"),
    ],
)
def test_finds_chunks_that_are_not_alone_on_nodes_of_their_own(
    taints: tuple[Taint, ...],
    beside: bool,  # noqa: FBT001 - the case
    words: str,
) -> None:
    own = demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN))
    other = demand("other", count=1, pod_shape=TOLERANT)
    broken = found(reserved_placement(*taints, beside=beside), own, *((other,) if beside else ()))
    assert any(words in item for item in broken) if words else broken == ()


def test_finds_chunks_that_do_not_tolerate_their_own_taint() -> None:
    own = demand(count=1, pod_shape=shape(own_taint=OWN))
    assert any("a taint of its own is not tolerated" in item for item in found(reserved_placement(OWN), own))


@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize("opens_nodes", [True, False])
def test_finds_chunks_on_a_shared_node_booked_or_not(*, opens_nodes: bool, booked: bool) -> None:
    own = demand(count=1, pod_shape=replace(TOLERANT, own_taint=OWN), opens_nodes=opens_nodes, booked=booked)
    occupied = OccupiedBin("one", None, (Holding(buffer_ref(), 0, 1),))
    broken = found(Placement((occupied,)), own, view=ClusterView(nodes=(node("one"),)))
    assert any("was not made for them alone" in item for item in broken)
