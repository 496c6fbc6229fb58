"""A node and its NodeClaim are one machine, whatever either says of the other yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.machines import Machine
from reconciler.model.nodes import NODEPOOL_LABEL, REGISTERED_LABEL, UNREGISTERED_TAINT, Node, NodeClaim
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin
from tests.builders import node

YOUNG = node("node-1", pool=None)
"""As kubelet makes it: none of Karpenter's labels."""


def claim(
    name: str = "claim", *, provider_id: str = "", node_name: str | None = None, deleting: bool = False
) -> NodeClaim:
    labels = ((NODEPOOL_LABEL, "general"),)
    return NodeClaim(name, labels, provider_id=provider_id, node_name=node_name, deleting=deleting)


def unregistered(name: str, pool: str = "general") -> Node:
    """As it joins the cluster: Karpenter has not written on it yet."""
    young = node(name, pool=None, taints=(Taint(UNREGISTERED_TAINT, "", "NoExecute"),))
    return replace(young, labels=tuple(sorted((*young.labels, (NODEPOOL_LABEL, pool)))))


OF_NODE_1, OF_X = "test://node-1", "test://x"
NAMELESS = replace(YOUNG, provider_id="")
TWIN = node("node-2", provider_id=YOUNG.provider_id)
GOING = claim("b", provider_id=OF_NODE_1, deleting=True)
ELSEWHERE = claim("b", provider_id="test://elsewhere")
REGISTERED = node("node-1", node_claim_uid="uid-b")


@pytest.mark.parametrize(
    ("says", "nodes", "node_claims", "machines"),
    [
        ("a provider ID joins before there is a node name", [YOUNG], [claim(provider_id=OF_NODE_1)], "node-1=claim"),
        ("a node name joins where the NodeClaim has no provider ID", [YOUNG], [claim(node_name="node-1")], "node-1=claim"),
        ("a node name joins where the node has none",
         [NAMELESS], [claim(provider_id=OF_NODE_1, node_name="node-1")], "node-1=claim"),
        ("empty provider IDs join nothing", [NAMELESS], [claim("a"), claim("b")], "node-1=- -=a -=b"),
        ("a node that took over the name of another is another machine",
         [YOUNG], [claim(provider_id="test://gone", node_name="node-1")], "node-1=- -=claim"),
        ("the provider ID counts for more than the name", [YOUNG, node("node-2", provider_id="")],
         [claim(provider_id=OF_NODE_1, node_name="node-2")], "node-1=claim node-2=-"),
        ("of two NodeClaims of one node the first by name counts",
         [YOUNG], [claim("a", provider_id=OF_NODE_1), claim("b", provider_id=OF_NODE_1)], "node-1=a"),
        ("whichever is told of first",
         [YOUNG], [claim("b", provider_id=OF_NODE_1), claim("a", provider_id=OF_NODE_1)], "node-1=a"),
        ("the one being deleted counts: the node goes whatever the other says",
         [YOUNG], [claim("a", provider_id=OF_NODE_1), GOING], "node-1=b"),
        ("a match by provider ID counts before one by name", [YOUNG],
         [claim("a", node_name="node-1", deleting=True), claim("b", provider_id=OF_NODE_1)], "node-1=b"),
        ("two NodeClaims without a node that share a provider ID are one machine",
         [], [claim("a", provider_id=OF_X), claim("b", provider_id=OF_X)], "-=a"),
        ("of these too the one being deleted counts",
         [], [claim("a", provider_id=OF_X), claim("b", provider_id=OF_X, deleting=True)], "-=b"),
        ("of two nodes of one provider ID the named one has the NodeClaim",
         [YOUNG, TWIN], [claim(provider_id=OF_NODE_1, node_name="node-2")], "node-1=- node-2=claim"),
        ("and the first where none is named", [YOUNG, TWIN], [claim(provider_id=OF_NODE_1)], "node-1=claim node-2=-"),
        ("machines are nodes by name and then NodeClaims by name", [node("b"), node("a")],
         [claim("d"), claim("c"), claim("e", node_name="a")], "a=e b=- -=c -=d"),
        ("a node that is seen before its NodeClaim tells of a launch is no second machine",
         [unregistered("node-1")], [claim("a"), claim("b")], "-=a -=b"),
        ("an unregistered node that came of no NodeClaim there is counts by itself",
         [unregistered("node-1"), unregistered("node-2"), unregistered("node-3", pool="batch")],
         [claim("a"), ELSEWHERE], "node-2=- node-3=- -=a -=b"),
        ("a registered node is joined by its owner until the NodeClaim tells of its launch",
         [REGISTERED], [claim("a"), replace(claim("b"), uid="uid-b")], "node-1=b -=a"),
    ],
)  # fmt: skip
def test_which_machines_there_are(says: str, nodes: list[Node], node_claims: list[NodeClaim], machines: str) -> None:
    """machines: the names of each one's node and NodeClaim."""
    found = ClusterView(nodes=tuple(nodes), node_claims=tuple(node_claims)).machines
    assert " ".join(f"{_name(item.node)}={_name(item.node_claim)}" for item in found) == machines, says


def _name(item: Node | NodeClaim | None) -> str:
    return "-" if item is None else item.name


def test_machines_are_joined_once_for_each_view() -> None:
    view = ClusterView(nodes=(YOUNG,))
    assert view.machines is view.machines
    later = replace(view, nodes=(YOUNG, node("node-2")))
    assert [machine.name for machine in later.machines] == ["node-1", "node-2"]
    assert view == replace(view)


def test_what_a_machine_is_comes_of_its_node_claim_before_its_node_is_registered() -> None:
    (machine,) = ClusterView(nodes=(YOUNG,), node_claims=(claim(provider_id="test://node-1"),)).machines
    assert machine.awaits_registration
    assert (machine.name, machine.node_pool) == ("node-1", "general")


def test_a_label_is_the_nodes_once_it_is_registered_and_the_node_claims_before() -> None:
    """As kube-scheduler sees it, and as Karpenter will write it."""
    young, claimed = (
        replace(YOUNG, labels=(("team", "node"),)),
        replace(claim(node_name=None), labels=(("team", "claim"),)),
    )
    assert Machine(young, claimed).label("team") == "claim"
    assert Machine(young, replace(claimed, node_name=young.name)).label("team") == "node"
    assert Machine(young, replace(claimed, conditions=(("Registered", "True"),))).label("team") == "node"
    assert Machine(replace(young, labels=()), replace(claimed, node_name=young.name)).label("team") == "claim"
    assert Machine(None, claimed).label("team") == Bin(None, claimed).label("team") == "claim"


def test_a_node_is_registered_once_any_sign_of_it_is_there() -> None:
    known = claim(provider_id="test://node-1")
    labelled = replace(YOUNG, labels=(*YOUNG.labels, (REGISTERED_LABEL, "true")))
    for there, claimed in (
        (labelled, known),
        (YOUNG, replace(known, node_name="node-1")),
        (YOUNG, replace(known, conditions=(("Registered", "True"),))),
    ):
        (machine,) = ClusterView(nodes=(there,), node_claims=(claimed,)).machines
        assert not machine.awaits_registration
