"""The alert rules that ship: well-formed, and about metrics that exist."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.changes import Outcome
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Transient
from reconciler.ports import PassResult
from reconciler.telemetry.metrics import Metrics
from tests.fakes.passes import wrote
from tests.plans import full_plan

RULES = Path(__file__).resolve().parents[3] / "config" / "monitoring" / "prometheus_rule.yaml"
METRIC = re.compile(r"\b(?:headroom|karpenter)_[a-z_]+\b")


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def served() -> set[str]:
    """Every sample name of a daemon that has seen a bit of everything."""
    metrics = Metrics()
    tree = SourceTree("main@sha1:abc", stalled=("GitOperationFailed", "gone"))
    metrics.observe(
        PassResult(plan=full_plan(), tree=tree, change_set=wrote(Outcome.APPLIED), timings={"git": 1}),
        now=datetime(2026, 11, 21, tzinfo=UTC),
    )
    metrics.observe(PassResult(), now=datetime(2026, 11, 21, tzinfo=UTC))
    metrics.observe_poll("changed", 0.1)
    metrics.count_request("GET", "nodes", "200")
    metrics.count_webhook("taken")
    metrics.count_report("created")
    metrics.count_snapshot("published")
    return {sample.name for family in metrics.registry.collect() for sample in family.samples}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_a_rule_is_about_metrics_that_the_daemon_serves(rule: dict[str, Any]) -> None:
    named = set(METRIC.findall(rule["expr"])) | set(METRIC.findall(rule["annotations"]["description"]))
    assert named
    exist = served()
    assert {name for name in named if not any(name in (sample, sample.rpartition("_")[0]) for sample in exist)} == set()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_a_rule_waits_a_while_has_a_severity_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Headroom[A-Z][A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["expr"].count("(") == rule["expr"].count(")")


def test_one_fires_when_no_pass_has_succeeded_since_the_start() -> None:
    """A time of success is not there then, so that nothing can be old."""
    (expression,) = (rule["expr"] for rule in rules() if rule["alert"] == "HeadroomNeverReconciled")
    metrics = Metrics()
    metrics.observe(PassResult(failure=Transient("no answer")), now=datetime(2026, 11, 21, tzinfo=UTC))
    sampled = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    assert [name in sampled for name in METRIC.findall(expression)] == [True, False]


def test_alerts_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in rules()]
    assert sorted(set(names)) == sorted(names)


def test_one_fires_when_every_replica_is_gone_and_one_when_none_leads() -> None:
    """Every other rule is silent without series."""
    shipped = {rule["alert"]: (rule["expr"], rule["labels"]["severity"]) for rule in rules()}
    assert shipped["HeadroomGone"] == ("absent(headroom_leader)", "critical")
    assert shipped["HeadroomNoLeader"] == ("max by (cluster) (headroom_leader) == 0", "critical")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_is_about_one_cluster_and_names_it(rule: dict[str, Any]) -> None:
    if rule["alert"] == "HeadroomGone":
        return  # the process itself
    aggregations = re.findall(r"\b(?:max|min|sum|avg|count)\b(?: by \((.*?)\))?", rule["expr"])
    assert aggregations
    assert all("cluster" in labels.split(", ") for labels in aggregations)
    assert rule["annotations"]["summary"].endswith("{{ with $labels.cluster }} in {{ . }}{{ end }}")
