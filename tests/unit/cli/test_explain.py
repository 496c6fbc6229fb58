"""`headroom explain` on the example repository: which demand is meant. And what a plan says of the coming 30 days."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconciler.cli.application import application
from reconciler.model.errors import Invalid
from tests import manifests
from tests.manifests import applied
from tests.unit.cli.two_folders import POOL, SHAPE, START, Folders, buffer, office

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples-repo"
WHERE = (
    *("--repo", str(EXAMPLES), "--path", "clusters/production", "--now", "2026-11-23T08:00:00Z"),
    *("--cluster", f"snapshot:{EXAMPLES / 'snapshots' / 'production'}"),
)


def explain(name: str, *words: str) -> Result:
    return CliRunner().invoke(application, ["explain", name, *WHERE, *words], standalone_mode=False)


def test_the_end_of_a_name_is_enough() -> None:
    # stderr may tell what takes long
    whole, *parts = (explain(name).stdout for name in ("CapacityBuffer/shop/checkout", "shop/checkout", "checkout"))
    assert parts == [whole, whole] != ["", ""]


def test_what_is_not_declared_hints_at_what_is() -> None:
    error = explain("chekout").exception
    assert isinstance(error, Invalid)
    assert error.message == "'chekout' is not a demand here"
    assert error.hint == "did you mean CapacityBuffer/shop/checkout?"


@pytest.mark.parametrize(
    ("name", "command"), [("MetricsProducer/shop/business-hours", "schedule"), ("NodePool/general", "budgets")]
)
def test_what_is_no_demand_is_told_by_another_command(name: str, command: str) -> None:
    error = explain(name).exception
    assert isinstance(error, Invalid)
    assert f"`headroom {command}`" in error.hint


# What `headroom plan` says of the coming 30 days: the same as `headroom diff` says of it, where it is worked out.

FOLLOWING = START | {"office.yaml": office(60), "web.yaml": buffer(replicas_from="office")}


def test_what_a_schedule_asks_for_later_is_in_the_cost(folders: Folders) -> None:
    """It was the price of a Sunday, times 730 hours."""
    over = folders.plan(FOLLOWING, "--cost")["cost"]["over30Days"]
    changes = folders.document(FOLLOWING, before={"pool.yaml": POOL, "shape.yaml": SHAPE})["changes"]["cost"]
    assert over["before"] == 0
    assert over["after"] == over["delta"] == changes["over30Days"]["after"]
    assert [row["cost"] for row in over["byDemand"]] == [row["after"] for row in changes["byDemand"]]
    assert [(row["name"], row["cost"]) for row in over["byNodePool"]] == [("general", over["after"])]
    values = {row["value"]: row for row in over["byScheduleValue"]}
    assert values[60]["cost"] > values[3]["cost"] > 0
    assert values[60]["hours"] + values[3]["hours"] == pytest.approx(720)
    text = folders.plan_text(FOLLOWING, "--cost")
    assert f"over the coming 30 days ${over['after']:,.2f}" in text
    assert f"while MetricsProducer/shop/office is 60: ${values[60]['cost']:,.2f}; {values[60]['hours']:g} hours" in text
    page = folders.plan_text(FOLLOWING, "--cost", "--output=markdown")
    assert "Cost over 30 days, by what a schedule says (2)" in page


def test_a_plan_without_schedules_has_it_without_being_asked(folders: Folders) -> None:
    over = folders.plan(START)["cost"]["over30Days"]
    assert over["after"] == pytest.approx(3 * 0.4 * 720)


def test_what_would_take_long_waits_to_be_asked_for(folders: Folders) -> None:
    assert folders.plan(FOLLOWING)["cost"]["over30Days"] is None
    assert "--cost computes what schedules and requests ask for over the coming 30 days" in folders.plan_text(FOLLOWING)


def test_what_is_no_longer_declared_is_not_paid_for(folders: Folders) -> None:
    """A pass that deletes it still plans for it."""
    folders.lists["capacitybuffers"] = [applied(manifests.buffer("old", "replicas: 40", source="old.yaml"))]
    over = folders.plan(START, "--cost")["cost"]["over30Days"]
    assert over["after"] == pytest.approx(3 * 0.4 * 720)
    assert folders.plan(START)["cost"]["over30Days"] is None, "a second placement waits to be asked for"


def test_why_an_hour_costs_less_than_the_30_days_say_is_told(folders: Folders) -> None:
    """The caps of one pass let 100 of 200 nodes be made, and the 30 days have all of them."""
    everything = START | {"pool.yaml": POOL.replace('cpu: "400"', 'cpu: "4000"'), "web.yaml": buffer(1400)}
    cost = folders.plan(everything, "--cost")["cost"]
    assert cost["perHourAfter"] == pytest.approx(100 * 0.4)
    assert cost["over30Days"]["after"] == pytest.approx(200 * 0.4 * 720)
    words = "100 nodes ($40.00/h) are beyond what this pass makes: the cost over 30 days counts them, the hourly price does not"
    assert words in cost["assumptions"]
