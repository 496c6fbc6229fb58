"""Plans in every form, held to golden files. Renew them with HEADROOM_GOLDEN=write, and read the difference."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from reconciler.files import packaged_texts
from reconciler.model.changes import Action, ChangeSet, FieldChange, ObjectChange, Outcome, Plan
from reconciler.model.demand import Service
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef
from reconciler.model.spending import CostSpan, DemandCost, PoolCost, Spending, SteadyState, WindowCost
from reconciler.render.environment import Templates
from reconciler.report.difference.difference import Details, difference
from reconciler.report.difference.document import difference_document
from reconciler.report.difference.headline import Gates
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import PAGE_FILTERS, page_value, to_json
from reconciler.report.findings import sarif_document
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import applied_words, pass_text, plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.plan.words import summary
from reconciler.report.words import moment
from tests.builders import buffer_ref
from tests.fakes.passes import wrote
from tests.plans import NOW, full_documents, full_plan

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
BERLIN = timezone(timedelta(hours=1), "CET")


@pytest.fixture
def templates() -> Templates:
    return Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)


def check(name: str, text: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


def empty_plan() -> Plan:
    return Plan(revision=None, now=NOW)


@pytest.mark.parametrize("name", ["full", "empty"])
def test_plan_in_every_form(name: str, templates: Templates) -> None:
    plan = {"full": full_plan, "empty": empty_plan}[name]()
    check(f"plan-{name}.txt", page_text(plan_page(plan, cluster="production", zone=BERLIN)))
    check(f"plan-{name}.json", to_json(plan_document(plan)))
    page = plan_page(plan, cluster="production", zone=BERLIN)
    check(f"plan-{name}.md", templates.render("report.md.j2", page))
    check(f"plan-{name}.html", templates.render("report.html.j2", page))


def test_what_has_errors_is_declared() -> None:
    plan = replace(empty_plan(), findings=(Finding("invalid-value", Severity.ERROR, "spec is missing"),))
    text = page_text(plan_page(plan, cluster="production", zone=BERLIN))
    assert "Nothing to keep ready: what is declared has errors." in text
    assert "No change, but there are errors" in text
    assert "as declared" not in text


def test_difference_in_every_form(templates: Templates) -> None:
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
    check("diff.txt", page_text(difference_page(change, cluster="production", zone=BERLIN)))
    check("diff.json", to_json(difference_document(change)))
    page = difference_page(change, cluster="production", zone=BERLIN)
    check("diff.md", templates.render("report.md.j2", page))
    check("diff.html", templates.render("report.html.j2", page))
    check("diff.sarif", to_json(sarif_document(change.new_findings)))


def test_a_plan_does_not_differ_from_itself() -> None:
    change = difference(full_plan(), full_plan())
    assert not change.has_changes
    assert change.new_findings == ()
    assert change.per_month_delta == 0


def test_a_new_object_says_where_it_is_declared_and_an_update_says_its_fields() -> None:
    applied, deleted = [
        item for item in plan_page(full_plan(), cluster="production")["sections"] if "Objects" in item["title"]
    ]
    update, create = applied["rows"]
    (delete,) = deleted["rows"]
    assert (applied["columns"], deleted["columns"]) == (["Name", "What", "Fields"], ["Name", "What", "Why"])
    assert update["fields"] == ["spec.weight: 10 → 20", 'spec.limits: (absent) → {"cpu": "64"}']
    assert (create["why"], create["fields"]) == ("declared in buffers.yaml:1", [])
    assert (delete["why"], delete["fields"]) == ("no longer in the repository", [])


def test_fields_of_a_new_object_are_not_listed() -> None:
    creation = ObjectChange(buffer_ref("web"), Action.CREATE, (FieldChange("spec", None, {"replicas": 2}),))
    (section,) = plan_page(Plan(revision=None, now=NOW, objects=(creation,)), cluster="production")["sections"]
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
