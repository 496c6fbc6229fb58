"""Where chunks are by topology domain, as a person reads it in a plan and an explanation."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.changes import DemandOutcome, DomainCount, NodeClaimChanges, NodeClaimCreation, Plan
from reconciler.model.nodes import ZONE_LABEL
from reconciler.model.placement import Holding, OccupiedBin, UnplacedReason
from reconciler.report.explanation import explanation, explanation_document, explanation_text
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.plan.words import domain_lines
from tests.builders import buffer_ref, demand
from tests.plans import NOW, planned

RACK = "example.com/rack"
OUTCOME = DemandOutcome(
    demand(count=6),
    on_existing=2,
    on_new=4,
    unplaced=0,
    domains=(
        DomainCount("new-1", RACK, ("r3",), 4),
        DomainCount("new-1", ZONE_LABEL, ("zone-a", "zone-b"), 4),
        DomainCount("node-1", RACK, (), 2),
        DomainCount("node-1", ZONE_LABEL, ("zone-b",), 2),
    ),
)
PLAN = Plan(
    revision=None,
    now=NOW,
    demands=(OUTCOME,),
    node_claims=NodeClaimChanges(create=(NodeClaimCreation("new-1", planned(Holding(buffer_ref(), 0, 4)), ""),)),
    occupied=(OccupiedBin("node-1", None, (Holding(buffer_ref(), 0, 2),)),),
)


def test_a_plan_sums_chunks_up_by_domain_and_names_what_a_new_node_has() -> None:
    text = page_text(plan_page(PLAN, cluster="production"))
    assert "      by example.com/rack: 4 in r3 and 2 with no such label\n" in text
    assert "      by topology.kubernetes.io/zone: 2 in zone-b and 4 in zone-a or zone-b\n" in text
    assert "\n      NodePool general with example.com/rack=r3, for 4 of CapacityBuffer/shop/web" in text


def test_an_explanation_names_them_node_by_node() -> None:
    found = explanation(PLAN, "CapacityBuffer/shop/web")
    lines = explanation_text(found).splitlines()
    there = f"existing node; no {RACK}, {ZONE_LABEL}=zone-b"
    assert f"  2 chunks in node-1 ({there})" in lines
    new = f"new node in NodePool general; {RACK}=r3, {ZONE_LABEL}=zone-a or zone-b"
    assert f"  4 chunks in new-1 ({new})" in lines
    assert f"  by {RACK}: 4 in r3 and 2 with no such label" in lines
    document = explanation_document(found)
    assert document["bins"][0]["labels"] == {RACK: [], ZONE_LABEL: ["zone-b"]}
    assert document["domains"][0] == {"key": RACK, "value": "r3", "count": 4}


def test_a_reason_that_is_no_candidates_counts_none() -> None:
    """It read "no node (1 candidate)" of a cluster without any."""
    reasons = (UnplacedReason("no node", 1, "the cluster has no node"), UnplacedReason("node full", 2, "a has no room"))
    plan = replace(PLAN, demands=(replace(OUTCOME, unplaced=2, unplaced_reasons=reasons),))
    lines = explanation_text(explanation(plan, "CapacityBuffer/shop/web")).splitlines()
    assert "    no node: the cluster has no node" in lines
    assert "    node full (2 nodes): a has no room" in lines


def test_of_many_domains_the_rest_is_counted() -> None:
    domains = tuple(DomainCount(f"node-{n:02}", RACK, (f"r{n:02}",), 1) for n in range(20))
    (line,) = domain_lines(replace(OUTCOME, domains=domains))
    assert line.startswith(f"by {RACK}: 1 in r00, 1 in r01")
    assert line.endswith("1 in r07 and 12 in 12 others")
