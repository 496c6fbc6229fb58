"""Plans in every form, held to golden files. Renew them with HEADROOM_GOLDEN=write, and read the difference."""

import os
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from reconciler.model.changes import Plan
from reconciler.packaged import packaged_texts
from reconciler.render.environment import Templates
from reconciler.report.difference import difference, difference_document
from reconciler.report.machine import plan_document, to_json
from reconciler.report.page import difference_page, plan_page
from reconciler.report.text import difference_text, plan_text
from tests.plans import NOW, full_plan

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BERLIN = timezone(timedelta(hours=1), "CET")


@pytest.fixture
def templates() -> Templates:
    return Templates(packaged_texts("templates", suffix=".j2"))


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
    check(f"plan-{name}.txt", plan_text(plan, cluster="production", zone=BERLIN))
    check(f"plan-{name}.json", to_json(plan_document(plan)))
    page = plan_page(plan, cluster="production", zone=BERLIN)
    check(f"plan-{name}.md", templates.render("report.md.j2", page))
    check(f"plan-{name}.html", templates.render("report.html.j2", page))


def test_difference_in_every_form(templates: Templates) -> None:
    change = difference(empty_plan(), full_plan())
    check("diff.txt", difference_text(change, zone=BERLIN))
    check("diff.json", to_json(difference_document(change)))
    page = difference_page(change, cluster="production", zone=BERLIN)
    check("diff.md", templates.render("report.md.j2", page))


def test_a_plan_does_not_differ_from_itself() -> None:
    change = difference(full_plan(), full_plan())
    assert not change.has_changes
    assert change.new_findings == ()
    assert change.per_month_delta == 0
