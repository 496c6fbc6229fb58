"""The checker has each machine once: a node and the NodeClaim that it came of are one, whether or not the NodeClaim names it yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, Node, NodeClaim
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, shape

NODE = replace(node("one", cpu="2"), provider_id="aws:///zone-a/i-1")
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
    asked = demand(count=1, pod_shape=replace(shape("100m"), requests=shape("100m").requests + device))
    promised = replace(CLAIM, allocatable=CLAIM.allocatable + device)
    held = Placement((OccupiedBin("one", None, (Holding(buffer_ref(), 0, 1),)),))
    for there, words in ((YOUNG, ()), (NODE, ("one: example.com/gpu is overcommitted (1 of 0)",))):
        view = ClusterView(nodes=(there,), node_claims=(promised,))
        assert violations(Problem(view, (node_pool(),), demands=(asked,)), held) == words
