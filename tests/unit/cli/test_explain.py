"""`headroom explain` of a schedule and of a NodePool, on the example repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from click.testing import CliRunner, Result

from reconciler.cli.application import application
from reconciler.model.errors import Invalid

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples-repo"
SCHEMA = json.loads((ROOT / "reconciler" / "report" / "schemas" / "explain.v1.json").read_text())
WHERE = (
    *("--repo", str(EXAMPLES), "--path", "clusters/production", "--now", "2026-11-23T08:00:00Z"),
    *("--cluster", f"snapshot:{EXAMPLES / 'snapshots' / 'production'}"),
)


def explain(name: str, *words: str) -> Result:
    return CliRunner().invoke(application, ["explain", name, *WHERE, *words], standalone_mode=False)


def document(name: str) -> Any:
    done = explain(name, "--output", "json")
    printed = json.loads(done.output)
    jsonschema_rs.Draft202012Validator(SCHEMA).validate(printed)
    return printed


def test_a_schedule_says_what_gives_its_value_and_what_follows_it() -> None:
    text = explain("MetricsProducer/shop/business-hours").output
    assert "  3 now, 2026-11-23" in text
    assert ": behaviors[0]\n" in text
    assert "followed by CapacityBuffer/shop/web: replicas, 10m ahead" in text
    found = document("MetricsProducer/shop/business-hours")["schedule"]
    assert (found["currentValue"], found["behavior"], found["nextValue"]) == (3, 0, 1)
    assert found["followers"] == [{"object": "CapacityBuffer/shop/web", "follows": "replicas, 10m ahead"}]


def test_a_node_pool_says_which_nodes_the_plan_makes_and_what_its_budgets_allow() -> None:
    text = explain("NodePool/general").output
    assert "3 new nodes in this plan" in text
    assert "disruptions for Drifted: 0 allowed: budgets[0] binds" in text
    found = document("NodePool/general")["nodePool"]
    assert len(found["creates"]) == 3
    assert {row["total"] for row in found["budgets"]} == {3}


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("checkou", "CapacityBuffer/shop/checkout"),
        ("CapacityBuffer/checkout", "CapacityBuffer/shop/checkout"),
        ("NodePool/gen", "NodePool/general"),
        ("business", "MetricsProducer/shop/business-hours"),
    ],
)
def test_part_of_a_name_is_enough(part: str, whole: str) -> None:
    assert explain(part).output == explain(whole).output != ""


def test_what_is_not_declared_hints_at_what_is() -> None:
    error = explain("NodePool/genral").exception
    assert isinstance(error, Invalid)
    assert error.hint.startswith("did you mean NodePool/general")


@pytest.mark.parametrize("name", ["MetricsProducer/shop/nothing", "NodePool/nothing"])
def test_what_is_not_declared_is_refused(name: str) -> None:
    error = explain(name).exception
    assert isinstance(error, Invalid)
    assert "is not a demand, schedule or NodePool here" in error.message
