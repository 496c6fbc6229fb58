"""Whole plans: what goes into them, and that nothing more does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.model.changes import NodeClaimChanges, PendingOutcome, Plan
from reconciler.model.declared import Declared, SourceTree
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import Inventory
from reconciler.model.rules import Caps, PlacementRules
from reconciler.model.view import ClusterView
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.launching.back_offs import launch_record
from reconciler.plan.plan import make_plan
from tests.builders import demand, instance_type, node_pool, overlay
from tests.unit.plan.worlds import HELD, NOW, OWNER, chunks, occupied, planned, together, waiting_pod, with_node

POD = Demand(waiting_pod().demand, desired=1)


def plan(
    view: ClusterView | None = None,
    *,
    caps: Caps | None = None,
    unrendered: Mapping[ObjectRef, str] | None = None,
    **known: Any,
) -> Plan:
    seen = view or ClusterView()
    facts = Facts(
        NOW,
        view=seen,
        effective=Declared(node_pools=(node_pool(),)),
        instance_types=(instance_type(),),
        price_source="prices of a test",
        launches=launch_record(seen, NOW, PlacementRules()),
    )
    return make_plan(replace(facts, **known), PlanRules(caps=caps or Caps(), owner=OWNER), unrendered)


def test_chunks_that_need_a_node_make_one_and_cost_it() -> None:
    answer = plan(demands=(demand(),), placement=Placement(planned=(planned(chunks(3), price=0.3),)))
    (creation,) = answer.node_claims.create
    assert answer.demands[0].on_new == 3
    assert (answer.cost.per_hour_before, answer.cost.per_hour_after) == (0.0, 0.3)
    assert answer.cost.assumptions == ("prices of a test",)
    assert list(answer.records["launches"]) == [creation.name]


def test_a_node_stays_protected_while_a_cap_or_a_template_holds_back_what_replaces_it() -> None:
    asked: dict[str, Any] = {
        "demands": (demand(),),
        "placement": Placement(planned=(planned(chunks(3)), planned(chunks(1, "other")))),
        "leaving": frozenset({"node-1"}),
    }
    view = with_node("node-1", HELD)
    names = [creation.name for creation in plan(view, **asked).node_claims.create]
    template = dict.fromkeys((ObjectRef("karpenter.sh", "NodeClaim", "", name) for name in names), "line 1 fails")
    for answer in (plan(view, caps=Caps(new_nodes_per_pass=1), **asked), plan(view, unrendered=template, **asked)):
        assert answer.node_claims.release == ()
        assert "node-1 stays protected until the node that replaces it is there" in answer.notes
    # A cap that stays met could never be left otherwise.
    assert plan(view, **asked, caps=Caps(price_per_hour=0.01)).node_claims.release != ()


def test_an_incomplete_view_releases_and_prunes_nothing() -> None:
    view = replace(with_node("node-1", HELD), complete=False, gaps=("pods could not be listed",))
    answer = plan(view)
    assert answer.blocked == ("pods could not be listed",)
    assert answer.node_claims == NodeClaimChanges()
    unexplained = plan(replace(view, gaps=()))
    assert unexplained.blocked == ("the cluster could not be read in full",)


def test_a_rewound_branch_releases_and_prunes_nothing_but_protects() -> None:
    view = together(with_node("node-1", HELD), with_node("node-2"))
    answer = plan(view, tree=SourceTree(None, rewound=True), placement=Placement(occupied(node_2=[chunks()])))
    assert answer.node_claims.release == ()
    assert len(answer.node_claims.hold) == 1
    assert answer.blocked == ("the branch was force-pushed a short while ago",)


def test_pending_pods_are_told_one_by_one_only_when_asked_for() -> None:
    placement = Placement(planned=(planned(waiting_pod()),))
    assert plan(demands=(POD,), placement=Placement()).demands == ()
    answer = plan(demands=(POD,), placement=placement, include_pending=True)
    assert [item.demand for item in answer.demands] == [POD]
    assert answer.pending == PendingOutcome(placed_on_new=1)


def test_findings_are_sorted_and_none_comes_twice() -> None:
    def finding(file: str, code: str) -> Finding:
        return Finding(code, Severity.WARNING, "trouble", SourcePosition(file, 1))

    answer = plan(findings=(finding("b", "x"), finding("a", "y"), finding("b", "x"), finding("a", "x")))
    assert [(item.position.file, item.code) for item in answer.findings if item.position] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
    ]


def test_a_suspended_headroom_says_that_nothing_is_applied() -> None:
    assert plan(suspended=True).notes == ("headroom is suspended: nothing of this is applied",)


def test_price_overlays_are_an_assumption() -> None:
    overlays = Declared(node_overlays=(overlay("cheap", price_adjustment="-5%"),))
    for answer in (plan(repository=overlays), plan(live=overlays)):
        assert "existing ones and static NodePools' have the catalog's price" in answer.cost.assumptions[1]


def test_what_others_remember_in_the_inventory_stays() -> None:
    view = ClusterView(inventory=Inventory(records={"finishedRequests": {"a": 1}, "launches": {}}))
    assert plan(view).records == {"finishedRequests": {"a": 1}}
