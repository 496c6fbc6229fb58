"""A node and its NodeClaim are one machine, whatever either says of the other yet."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.nodes import NODEPOOL_LABEL, REGISTERED_LABEL, UNREGISTERED_TAINT, Node, NodeClaim
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView, Machine
from reconciler.plan.bins import Bin
from tests.builders import node

YOUNG = node("node-1", pool=None)
"""As kubelet makes it: none of Karpenter's labels."""


def claim(
    name: str = "claim", *, provider_id: str = "", node_name: str | None = None, deleting: bool = False
) -> NodeClaim:
    labels = ((NODEPOOL_LABEL, "general"),)
    return NodeClaim(name, labels, provider_id=provider_id, node_name=node_name, deleting=deleting)


def joined(view: ClusterView) -> list[tuple[str | None, str | None]]:
    """Names of each machine's node and NodeClaim."""
    return [(_name(machine.node), _name(machine.node_claim)) for machine in view.machines]


def _name(item: Node | NodeClaim | None) -> str | None:
    return None if item is None else item.name


def test_a_provider_id_joins_before_there_is_a_node_name() -> None:
    assert joined(ClusterView(nodes=(YOUNG,), node_claims=(claim(provider_id="test://node-1"),))) == [
        ("node-1", "claim")
    ]


def test_a_node_name_joins_where_either_has_no_provider_id() -> None:
    nameless = replace(YOUNG, provider_id="")
    assert joined(ClusterView(nodes=(YOUNG,), node_claims=(claim(node_name="node-1"),))) == [("node-1", "claim")]
    named = claim(provider_id="test://node-1", node_name="node-1")
    assert joined(ClusterView(nodes=(nameless,), node_claims=(named,))) == [("node-1", "claim")]


def test_empty_provider_ids_join_nothing() -> None:
    view = ClusterView(nodes=(replace(YOUNG, provider_id=""),), node_claims=(claim("a"), claim("b")))
    assert joined(view) == [("node-1", None), (None, "a"), (None, "b")]


def test_a_node_that_took_over_the_name_of_another_is_another_machine() -> None:
    view = ClusterView(nodes=(YOUNG,), node_claims=(claim(provider_id="test://gone", node_name="node-1"),))
    assert joined(view) == [("node-1", None), (None, "claim")]


def test_the_provider_id_counts_for_more_than_the_name() -> None:
    nameless = replace(node("node-2"), provider_id="")
    view = ClusterView(nodes=(YOUNG, nameless), node_claims=(claim(provider_id="test://node-1", node_name="node-2"),))
    assert joined(view) == [("node-1", "claim"), ("node-2", None)]


def test_of_two_node_claims_of_one_node_one_counts() -> None:
    first, second = claim("a", provider_id="test://node-1"), claim("b", provider_id="test://node-1")
    assert joined(ClusterView(nodes=(YOUNG,), node_claims=(first, second))) == [("node-1", "a")]
    assert joined(ClusterView(nodes=(YOUNG,), node_claims=(second, first))) == [("node-1", "a")]


def test_of_two_node_claims_of_one_node_the_one_being_deleted_counts() -> None:
    """It takes the machine along, so that the node goes whatever the other says."""
    going = claim("b", provider_id="test://node-1", deleting=True)
    view = ClusterView(nodes=(YOUNG,), node_claims=(claim("a", provider_id="test://node-1"), going))
    assert joined(view) == [("node-1", "b")]


def test_a_match_by_provider_id_counts_before_one_by_name() -> None:
    by_name, by_provider_id = claim("a", node_name="node-1", deleting=True), claim("b", provider_id="test://node-1")
    assert joined(ClusterView(nodes=(YOUNG,), node_claims=(by_name, by_provider_id))) == [("node-1", "b")]


def test_two_node_claims_without_a_node_that_share_a_provider_id_are_one_machine() -> None:
    going = claim("b", provider_id="test://x", deleting=True)
    assert joined(ClusterView(node_claims=(claim("a", provider_id="test://x"), going))) == [(None, "b")]
    kept = (claim("a", provider_id="test://x"), claim("b", provider_id="test://x"))
    assert joined(ClusterView(node_claims=kept)) == [(None, "a")]


def test_of_two_nodes_of_one_provider_id_the_named_one_has_the_node_claim() -> None:
    nodes = (YOUNG, replace(node("node-2"), provider_id=YOUNG.provider_id))
    named = claim(provider_id="test://node-1", node_name="node-2")
    assert joined(ClusterView(nodes=nodes, node_claims=(named,))) == [("node-1", None), ("node-2", "claim")]
    unnamed = claim(provider_id="test://node-1")
    assert joined(ClusterView(nodes=nodes, node_claims=(unnamed,))) == [("node-1", "claim"), ("node-2", None)]


def test_machines_are_nodes_by_name_and_then_node_claims_by_name() -> None:
    view = ClusterView(nodes=(node("b"), node("a")), node_claims=(claim("d"), claim("c"), claim("e", node_name="a")))
    assert joined(view) == [("a", "e"), ("b", None), (None, "c"), (None, "d")]


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


def unregistered(name: str, pool: str = "general") -> Node:
    """As it joins the cluster: Karpenter has not written on it yet."""
    young = node(name, pool=None, taints=(Taint(UNREGISTERED_TAINT, "", "NoExecute"),))
    return replace(young, labels=tuple(sorted((*young.labels, (NODEPOOL_LABEL, pool)))))


def test_a_node_that_is_seen_before_its_node_claim_tells_of_a_launch_is_no_second_machine() -> None:
    view = ClusterView(nodes=(unregistered("node-1"),), node_claims=(claim("a"), claim("b")))
    assert joined(view) == [(None, "a"), (None, "b")]


def test_an_unregistered_node_that_came_of_no_node_claim_there_is_counts_by_itself() -> None:
    launched = claim("b", provider_id="test://elsewhere")
    nodes = (unregistered("node-1"), unregistered("node-2"), unregistered("node-3", pool="batch"))
    view = ClusterView(nodes=nodes, node_claims=(claim("a"), launched))
    assert joined(view) == [("node-2", None), ("node-3", None), (None, "a"), (None, "b")]


def test_a_registered_node_is_joined_by_its_owner_until_the_node_claim_tells_of_its_launch() -> None:
    registered = replace(node("node-1"), node_claim_uid="uid-b")
    view = ClusterView(nodes=(registered,), node_claims=(claim("a"), replace(claim("b"), uid="uid-b")))
    assert joined(view) == [("node-1", "b"), (None, "a")]
