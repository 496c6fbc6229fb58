"""What stands: nodes with their price and use, and what each demand costs now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.model.changes import DemandOutcome, NodeClaimChanges, NodeClaimCreation, Plan
from reconciler.model.nodes import HELD_ANNOTATION, PLACEHOLDER_LABEL, Node, NodeClaim
from reconciler.model.placement import Holding, OccupiedBin
from reconciler.model.timelines import NodeState, StandingNodes
from reconciler.model.view import ClusterView
from reconciler.spending.steady import standing_nodes
from tests.builders import buffer_ref, demand, instance_type, node, pod, shape
from tests.plans import planned

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
WEB, API = buffer_ref("web"), buffer_ref("api")
TYPES = (instance_type("m-4x", price=0.2),)
MADE = {PLACEHOLDER_LABEL: "true"}


def stands(view: ClusterView, *occupied: OccupiedBin, claims: NodeClaimChanges | None = None) -> StandingNodes:
    outcomes = tuple(DemandOutcome(demand(name, count=2), 2, 0, 0) for name in ("web", "api"))
    plan = Plan(None, NOW, demands=outcomes, occupied=occupied, node_claims=claims or NodeClaimChanges())
    return standing_nodes(plan, view, TYPES)


def test_a_node_has_its_price_and_what_its_pods_request_of_it() -> None:
    pods = (pod("a", node="node-1", pod_shape=shape("1", "4Gi")), pod("b", node="node-1", pod_shape=shape("1", "4Gi")))
    (one,) = stands(ClusterView(nodes=(node(cpu="4", memory="16Gi"),), pods=(*pods, pod("waits")))).nodes
    assert (one.price, one.cpu, one.memory) == (0.2, 0.5, 0.5)
    assert (one.state, one.instance_type, one.zone, one.capacity_type) == (
        NodeState.READY,
        "m-4x",
        "zone-a",
        "on-demand",
    )


def test_a_price_that_is_not_known_is_not_guessed() -> None:
    (one,) = stands(ClusterView(nodes=(node(instance_type="unheard-of"),))).nodes
    assert one.price is None


def test_a_buffer_costs_its_part_of_the_nodes_that_run_nothing_but_chunks() -> None:
    """Room on a node that pods pay for costs nothing more."""
    nodes = (node("made", labels=MADE), node("used", labels=MADE), node("others"))
    view = ClusterView(nodes=nodes, pods=(pod("a", node="used"),))
    both = (Holding(API, 0, 1), Holding(WEB, 0, 1))
    found = stands(view, *(OccupiedBin(item.name, None, both) for item in nodes))
    assert found.per_hour == {API: 0.1, WEB: 0.1}
    assert all(one.holdings == both for one in found.nodes)


def test_how_far_a_node_is() -> None:
    gone = node("d-going", deleting=True)
    starting = replace(
        node("b-starting"), labels=node("b-starting", labels={"karpenter.sh/initialized": "false"}).labels
    )
    nodes: tuple[Node, ...] = (node("a-ready"), starting, node("c-broken", ready=False), gone)
    claim = NodeClaim("e-asked-for", labels=(("karpenter.sh/nodepool", "general"),))
    creation = NodeClaimCreation("f-planned", planned(Holding(WEB, 0, 2), price=0.2))
    found = stands(ClusterView(nodes=nodes, node_claims=(claim,)), claims=NodeClaimChanges(create=(creation,)))
    assert [(one.name, str(one.state)) for one in found.nodes] == [
        ("a-ready", "ready"),
        ("b-starting", "coming"),
        ("c-broken", "not ready"),
        ("d-going", "going"),
        ("e-asked-for", "coming"),
        ("f-planned", "coming"),
    ]
    assert found.per_hour == {WEB: 0.2}, "a node that the plan makes is paid for from now on"


def test_a_node_that_was_made_already_is_not_counted_again_as_planned() -> None:
    claim = NodeClaim("same", labels=(("karpenter.sh/nodepool", "general"),))
    creation = NodeClaimCreation("same", planned(Holding(WEB, 0, 2)))
    found = stands(ClusterView(node_claims=(claim,)), claims=NodeClaimChanges(create=(creation,)))
    assert [one.name for one in found.nodes] == ["same"]


def test_it_says_what_is_held_has_drifted_and_expires() -> None:
    held = node(annotations={HELD_ANNOTATION: "true"})
    claim = NodeClaim(
        "claim",
        node_name="node-1",
        conditions=(("Drifted", "True"),),
        created=NOW,
        expire_after=timedelta(hours=5),
        provider_id="test://node-1",
    )
    (one,) = stands(ClusterView(nodes=(held,), node_claims=(claim,))).nodes
    assert (one.held, one.drifted, one.expires) == (True, True, NOW + timedelta(hours=5))
