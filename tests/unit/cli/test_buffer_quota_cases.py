"""ResourceQuotas as Cluster Autoscaler applies them to buffers, asked of `headroom plan` as a person would."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.demand.size import Dialect
from tests.unit.cli.buffer_documents import (
    Case,
    World,
    buffer,
    cases,
    condition,
    demand_of,
    in_cluster,
    limiting,
    pod_template,
    quota,
)

CA = "buffers_ca.yaml"


def parametrized(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases(CA, kind), ids=lambda case: case["name"])


@parametrized("quota")
def test_quotas_cap_buffers_oldest_first(case: Case, tmp_path: Path) -> None:
    """Named against the alphabet, so that only their ages put them in order."""
    given = case["input"]
    names = [f"b{9 - index}" for index in range(len(given["buffers"]))]
    world = World(tmp_path).add("resourcequotas", *map(quota, given["quotas"]))
    for item in given["podTemplates"]:
        extra = {key: value for key, value in item.items() if key not in {"name", "podSpec"}}
        world.add("podtemplates", pod_template(item["name"], item["podSpec"] | extra))
    for index, (name, item) in enumerate(zip(names, given["buffers"], strict=True)):
        spec = {"podTemplateRef": {"name": item["podTemplate"]}, "replicas": item["replicas"]}
        world.add("capacitybuffers", buffer(spec, name, f"2026-01-{index + 1:02}T00:00:00Z"))
    plan = world.plan(Dialect.CLUSTER_AUTOSCALER)
    rows = [demand_of(plan, name) for name in names]
    assert [row["desired"] for row in rows] == case["expect"]["replicas"]
    assert [limiting(row) for row in rows] == case["expect"]["limitedBy"]
    karpenter = world.plan(Dialect.KARPENTER)
    for name, item in zip(names, given["buffers"], strict=True):
        row = demand_of(karpenter, name)
        assert row["desired"] == item["replicas"], "Karpenter does not look at quotas"
        assert condition(row, "LimitedByQuotas") is None


@parametrized("quota_scope")
def test_a_quota_counts_only_pods_in_its_scope(case: Case, tmp_path: Path) -> None:
    """The pod also asks for a resource that the quota forbids; of no more than CPU and memory is its class of service."""
    given = case["input"]
    scarce = {"example.com/scarce": "1"}
    spec = dict(given["podSpec"])
    spec["containers"] = [*spec["containers"], {"requests": scarce}]
    scopes = {key: given[key] for key in ("scopes", "scopeSelector") if key in given}
    world = World(tmp_path).add("resourcequotas", quota({"hard": {"requests.example.com/scarce": "0"}, **scopes}))
    world.add("podtemplates", pod_template("t", spec))
    world.add("capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "replicas": 3}))
    row = demand_of(world.plan(Dialect.CLUSTER_AUTOSCALER))
    assert row["desired"] == (0 if case["expect"]["matches"] else 3)
    assert (condition(row, "LimitedByQuotas") is not None) == case["expect"]["matches"], "only where it was compared"


@parametrized("steps")
def test_a_buffer_that_is_not_ready_takes_nothing_from_a_quota(case: Case, tmp_path: Path) -> None:
    (step,), (after,) = case["input"]["steps"], case["expect"]["after"]
    buffers = [buffer(spec, name, step["creationTimes"][name]) for name, spec in step["buffers"].items()]
    world = in_cluster(tmp_path, step["apply"], *buffers).add("resourcequotas", quota(step["quota"]))
    plan = world.plan(Dialect.CLUSTER_AUTOSCALER)
    for name, expected in after.items():
        row = demand_of(plan, name)
        limited = condition(row, "LimitedByQuotas")
        shown = None if limited is None else limited["status"] == "True"
        assert {"replicas": row["desired"], "limited": shown} == expected
