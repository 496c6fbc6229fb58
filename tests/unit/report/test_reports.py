"""Plans in every form, held to golden files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from reconciler.model.changes import (
    Action,
    ChangeSet,
    DemandOutcome,
    DomainCount,
    FieldChange,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    Outcome,
    Plan,
    StaticPoolChange,
)
from reconciler.model.demand import REQUEST_KIND, Service
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import ZONE_LABEL
from reconciler.model.placement import Cause, Holding, OccupiedBin, UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.model.timelines import CostSpan, DemandCost, PoolCost, Spending, SteadyState, WindowCost
from reconciler.report.difference.difference import Details, difference
from reconciler.report.difference.document import difference_document
from reconciler.report.difference.headline import Gates
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import to_json
from reconciler.report.explanation import explanation, explanation_document, explanation_text
from reconciler.report.findings import sarif_document
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import applied_words, pass_text, plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.plan.words import domain_lines, summary
from reconciler.report.words import moment
from reconciler.wiring.posting import rendered_page
from tests.builders import buffer_ref, demand
from tests.fakes.passes import wrote
from tests.goldens import GOLDEN, check
from tests.plans import NOW, full_documents, full_plan, planned

BERLIN = timezone(timedelta(hours=1), "CET")


def empty_plan() -> Plan:
    return Plan(revision=None, now=NOW)


@pytest.mark.parametrize("name", ["full", "empty"])
def test_plan_in_every_form(name: str) -> None:
    plan = {"full": full_plan, "empty": empty_plan}[name]()
    check(GOLDEN / f"plan-{name}.txt", page_text(plan_page(plan, cluster="production", zone=BERLIN)))
    check(GOLDEN / f"plan-{name}.json", to_json(plan_document(plan)))
    page = plan_page(plan, cluster="production", zone=BERLIN)
    check(GOLDEN / f"plan-{name}.md", rendered_page("report.md.j2", page))
    check(GOLDEN / f"plan-{name}.html", rendered_page("report.html.j2", page))


def test_what_has_errors_is_declared() -> None:
    plan = replace(empty_plan(), findings=(Finding("invalid-value", Severity.ERROR, "spec is missing"),))
    text = page_text(plan_page(plan, cluster="production", zone=BERLIN))
    assert "Nothing to keep ready: what is declared has errors." in text
    assert "No change, but there are errors" in text
    assert "as declared" not in text


def test_difference_in_every_form() -> None:
    web, pools = buffer_ref("web"), {"general": PoolCost(3, 1.2), "spare": PoolCost(1, 0.1)}
    few = SteadyState(0.4, 1, pools={"general": PoolCost(1, 0.4)}, demands={web: DemandCost(Service(1, 1), 0.4)})
    many = SteadyState(1.3, 4, pools=pools, demands={web: DemandCost(Service(3, 3), 1.2)})
    start, middle, end = NOW, NOW + timedelta(days=2), NOW + timedelta(days=30)
    office = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "office")
    spent = (
        Spending(start, end, (CostSpan(start, end, few),)),
        Spending(
            start,
            end,
            (CostSpan(start, middle, few), CostSpan(middle, end, many)),
            (WindowCost(office, 3, 672.0, 806.4), WindowCost(office, 1, 48.0, 19.2)),
            ("2 of 300 states of the schedules are priced as the mean of the others",),
        ),
    )
    details = Details(
        written=full_documents(),
        spending=spent,
        conflicts=("pool.yaml",),
        notes=("a pass makes at most 100 new nodes",),
    )
    change = difference(empty_plan(), full_plan(), details)
    change = replace(change, failed_gates=Gates(max_monthly_increase=100, max_new_nodes=2).failures(change, BERLIN))
    check(GOLDEN / "diff.txt", page_text(difference_page(change, cluster="production", zone=BERLIN)))
    check(GOLDEN / "diff.json", to_json(difference_document(change)))
    page = difference_page(change, cluster="production", zone=BERLIN)
    check(GOLDEN / "diff.md", rendered_page("report.md.j2", page))
    check(GOLDEN / "diff.html", rendered_page("report.html.j2", page))
    check(GOLDEN / "diff.sarif", to_json(sarif_document(change.new_findings)))


def test_a_plan_does_not_differ_from_itself() -> None:
    change = difference(full_plan(), full_plan())
    assert not change.has_changes
    assert change.new_findings == ()
    assert change.per_month_delta == 0


@pytest.mark.parametrize(("bound", "fails"), [(216.0, False), (215.99, True)])
def test_a_bound_on_costs_is_kept_to_the_cent(bound: float, fails: bool) -> None:  # noqa: FBT001 - the case
    """Three nodes of $0.10 are $216.00 over 30 days; as binary numbers they were a little more than that."""
    end = NOW + timedelta(days=30)
    states = (SteadyState(), SteadyState(sum([0.1] * 3), 3))
    spent = tuple(Spending(NOW, end, (CostSpan(NOW, end, state),)) for state in states)
    change = difference(empty_plan(), empty_plan(), Details(spending=(spent[0], spent[1])))
    assert bool(Gates(max_monthly_increase=bound).failures(change)) is fails


def test_fields_of_a_new_object_are_not_listed() -> None:
    creation = ObjectChange(buffer_ref("web"), Action.CREATE, (FieldChange("spec", None, {"replicas": 2}),))
    (section,) = plan_page(Plan(revision=None, now=NOW, objects=(creation,)), cluster="production").sections
    assert section["columns"] == ["Name", "What", "Why"]
    assert section["rows"][0]["fields"] == []


@pytest.mark.parametrize(("year", "hours"), [(9999, 2), (1, -2)])
def test_a_time_whose_local_form_is_outside_the_calendar_is_told_in_utc(year: int, hours: int) -> None:
    edge = datetime(year, 12 if year > 1 else 1, 31 if year > 1 else 1, 23 if year > 1 else 0, tzinfo=UTC)
    assert moment(edge, timezone(timedelta(hours=hours))).endswith("UTC")


def test_the_summary_tells_objects_to_delete_from_those_to_apply() -> None:
    """A pass whose only write was a deletion said `1 object to apply`."""
    gone = ObjectChange(buffer_ref("old"), Action.DELETE)
    assert summary(Plan(None, NOW, objects=(gone,))) == "1 object to delete"
    new = ObjectChange(buffer_ref(), Action.CREATE)
    given_back = ObjectChange(buffer_ref("part"), Action.UPDATE)
    assert summary(Plan(None, NOW, objects=(new, given_back, gone))) == "2 objects to apply and 1 object to delete"


def test_writes_that_a_later_pass_makes_are_no_failures_and_their_cause_is_said_once() -> None:
    """The first pass of each new NodePool ended with "Applied in part", and a line for each of its NodeClaims."""
    applied, *skipped = wrote(Outcome.APPLIED, *[Outcome.SKIPPED] * 5).results
    waiting = [replace(result, message="waits until NodePool batch is applied") for result in skipped]
    text = pass_text(full_plan(), ChangeSet((applied, *waiting)), cluster="embedded", zone=UTC)
    named = "NodeClaim/general-1, NodeClaim/general-2, NodeClaim/general-3 and 2 more"
    assert text.splitlines()[-2:] == [
        "Applied, with 1 write to the cluster; 5 more wait.",
        f"  waits until NodePool batch is applied: {named}",
    ]
    assert applied_words(wrote(Outcome.APPLIED, Outcome.UNCHANGED)) == "Applied, with 1 write to the cluster."
    assert (
        applied_words(wrote(Outcome.APPLIED, Outcome.SKIPPED)) == "Applied, with 1 write to the cluster; 1 more waits."
    )
    partly = wrote(Outcome.APPLIED, Outcome.SKIPPED, Outcome.REFUSED)
    assert applied_words(partly) == "Applied in part: 1 of 3 writes to the cluster succeeded."


# Where chunks are by topology domain, as a person reads it in a plan and an explanation.

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
    node_claims=NodeClaimChanges(
        create=(NodeClaimCreation("new-1", planned(Holding(buffer_ref(), 0, 4)), "for 4 of CapacityBuffer/shop/web"),)
    ),
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
    reasons = (
        UnplacedReason(Cause.NO_NODE, 1, "the cluster has no node"),
        UnplacedReason(Cause.NODE_FULL, 2, "a has no room"),
    )
    plan = replace(PLAN, demands=(replace(OUTCOME, unplaced=2, unplaced_reasons=reasons),))
    lines = explanation_text(explanation(plan, "CapacityBuffer/shop/web")).splitlines()
    assert "    no node: the cluster has no node" in lines
    assert "    node full (2 nodes): a has no room" in lines


def test_of_many_domains_the_rest_is_counted() -> None:
    domains = tuple(DomainCount(f"node-{n:02}", RACK, (f"r{n:02}",), 1) for n in range(20))
    (line,) = domain_lines(replace(OUTCOME, domains=domains))
    assert line.startswith(f"by {RACK}: 1 in r00, 1 in r01")
    assert line.endswith("1 in r07 and 12 in 12 others")


# A price "a month" of nodes that nobody pays for a month says so.


def request(name: str) -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", REQUEST_KIND, "research", name)


def plan_of_nodes(*nodes: tuple[ObjectRef, ...]) -> Plan:
    """Each new node holds one chunk of each of these, at $0.20 an hour."""
    creations = [
        NodeClaimCreation(f"general-{number}", planned(*(Holding(ref, 0, 1) for ref in refs)))
        for number, refs in enumerate(nodes)
    ]
    return Plan(None, NOW, node_claims=NodeClaimChanges(create=tuple(creations)))


def told(of: Plan) -> list[str]:
    return [line.strip() for line in page_text(plan_page(of, cluster="staging")).splitlines() if "paid only" in line]


def test_nodes_for_a_request_are_paid_only_while_it_is_booked() -> None:
    """A booking of an hour was told as $298,771 a month."""
    booked = plan_of_nodes((request("training"),), (request("training"),), (buffer_ref("web"),))
    words = (
        "$0.40/h of the new nodes, $288.00 over 30 days, is for ProvisioningRequest/research/training: "
        "paid only while the capacity is booked"
    )
    assert told(booked) == [words]
    assert words in plan_document(booked)["cost"]["assumptions"]
    assert words in plan_page(booked, cluster="staging").assumptions


def test_of_a_node_that_a_buffer_shares_only_a_part_is_the_requests() -> None:
    """The example's request had most of two nodes, of which nothing was said."""
    (line,) = told(plan_of_nodes((request("training"), buffer_ref("web"))))
    assert line.startswith(
        "$0.10/h of the new nodes, $72.00 over 30 days, is for ProvisioningRequest/research/training:"
    )


def test_of_many_requests_the_first_are_named() -> None:
    (line,) = told(plan_of_nodes(tuple(request(f"r{number}") for number in range(5))))
    names = (
        "ProvisioningRequest/research/r0, ProvisioningRequest/research/r1, ProvisioningRequest/research/r2 and 2 more"
    )
    assert f"is for {names}:" in line


@pytest.mark.parametrize("one_shot", [False, True])
def test_nodes_of_a_one_shot_buffer_are_paid_until_it_is_used(one_shot: bool) -> None:  # noqa: FBT001 - the case
    outcome = DemandOutcome(replace(demand("web", count=1), one_shot=one_shot), 0, 1, 0)
    lines = told(replace(plan_of_nodes((outcome.demand.ref,)), demands=(outcome,)))
    assert [line.partition(": ")[2] for line in lines] == (["paid only until the capacity is used"] if one_shot else [])


# How two plans' static NodePools differ: each side counted from where it leaves the pool.


def plan_of_pools(*pools: StaticPoolChange) -> Plan:
    return Plan(revision=None, now=NOW, static_pools=pools)


GROWS = StaticPoolChange("reports", 1, 4, "m-4x", 0.2)
SHRINKS = StaticPoolChange("reports", 1, 0)


@pytest.mark.parametrize(
    ("base", "head", "line"),
    [
        (plan_of_pools(), plan_of_pools(GROWS), "NodePool reports: 3 more nodes (static): m-4x, $0.2000/h each"),
        (plan_of_pools(GROWS), plan_of_pools(), "NodePool reports: 3 fewer nodes (static)"),
        (plan_of_pools(SHRINKS), plan_of_pools(GROWS), "NodePool reports: 4 more nodes (static): m-4x, $0.2000/h each"),
        (plan_of_pools(), plan_of_pools(SHRINKS), "NodePool reports: 1 fewer node (static)"),
        (plan_of_pools(SHRINKS), plan_of_pools(), "NodePool reports: 1 more node (static)"),
    ],
)
def test_a_line_for_a_pool_that_comes_to_have_another_size(base: Plan, head: Plan, line: str) -> None:
    change = difference(base, head)
    assert change.has_changes
    assert f"{line}; " in page_text(difference_page(change, cluster="production"))


def test_the_plan_and_its_summary_name_them() -> None:
    assert "  + NodePool reports: 3 more nodes (static): m-4x, $0.2000/h each; 1 → 4" in page_text(
        plan_page(plan_of_pools(GROWS), cluster="c")
    )
    assert "  - NodePool reports: 1 fewer node (static); " in page_text(plan_page(plan_of_pools(SHRINKS), cluster="c"))
    assert summary(plan_of_pools(GROWS)) == "3 nodes more in static NodePools"
