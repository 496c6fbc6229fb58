"""What buffers may point to, and what each dialect makes of it: documents in, `headroom plan --output json` out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.buffers import Dialect
from tests.case_files import Case, cases_in, for_each
from tests.fakes.embedded import node_pool
from tests.unit.cli.buffer_documents import (
    Document,
    World,
    buffer,
    condition,
    demand_of,
    in_cluster,
    limiting,
    pod_spec,
    pod_template,
    quota,
    with_quotas,
    workload,
)

WEB: Document = {
    "kind": "Deployment",
    "name": "web",
    "podSpec": {"containers": [{"requests": {"cpu": "1"}}]},
    "replicas": 20,
}
TENTH: Document = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": 10}
STORY_2 = """
apiversion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata:
  name: testing-capacity
  namespace: my-namespace
spec:
  targetRef:
    apiVersion: apps/v1
    kind: CustomComputeClass
    name: my-custom-class
  type: buffer.x-k8s.io/active-capacity
  recreationStrategy: keep-empty
  nodeClassBufferSpec:
    totalCpu: 40
    totalMem: 5120Mi
"""
"""As in the Buffers API proposal, story 2."""


def pod(
    name: str, *, app: str = "web", cpu: str = "1", created: str = "2026-11-21T10:00:00Z", **metadata: Any
) -> Document:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": app},
            "creationTimestamp": created,
            **metadata,
        },
        "spec": pod_spec({"containers": [{"requests": {"cpu": cpu}}], "nodeName": "n1"}),
        "status": {"phase": "Running"},
    }


def counts(world: World, name: str = "b") -> dict[str, int | None]:
    return {str(dialect): demand_of(world.plan(dialect), name)["desired"] for dialect in Dialect}


@pytest.mark.parametrize("group", ["core", "", None])
def test_the_core_group_by_any_of_its_names(group: str | None, tmp_path: Path) -> None:
    reference = {"kind": "ReplicationController", "name": "rc"} | ({} if group is None else {"apiGroup": group})
    target = {"kind": "ReplicationController", "name": "rc", "podSpec": WEB["podSpec"], "replicas": 4}
    world = in_cluster(tmp_path, [target], buffer({"scalableRef": reference, "percentage": 50}))
    assert counts(world) == {"karpenter": 2, "ca": 2}


def test_a_workload_in_the_cluster_gives_shape_and_size_whatever_git_has_of_it(tmp_path: Path) -> None:
    """40 replicas of 3 CPUs in the cluster; 20 of 1 CPU in Git."""
    live = workload({**WEB, "replicas": 40, "podSpec": {"containers": [{"requests": {"cpu": "3"}}]}})
    world = World(tmp_path, repository=[workload(WEB)]).add(
        "capacitybuffers", buffer(TENTH | {"limits": {"cpu": "10"}})
    )
    assert counts(world) == {"karpenter": 2, "ca": 2}, "the one in Git stands in where there is none yet"
    world.add("workloads", live)
    assert counts(world) == {"karpenter": 3, "ca": 3}


def test_a_pod_template_in_git_is_the_one_that_headroom_applies(tmp_path: Path) -> None:
    mine, theirs = (pod_template("t", {"containers": [{"requests": {"cpu": cpu}}]}) for cpu in ("2", "1"))
    del mine["metadata"]["generation"]
    world = World(tmp_path, repository=[mine]).add("podtemplates", theirs)
    world.add("capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "limits": {"cpu": "8"}}))
    assert counts(world) == {"karpenter": 4, "ca": 4}


def compute_class_pool(group: str) -> Document:
    pool = node_pool("ci")
    pool["spec"]["template"]["spec"]["nodeClassRef"] = {
        "group": group,
        "kind": "CustomComputeClass",
        "name": "my-custom-class",
    }
    return pool


def test_the_proposals_story_2_as_it_is_written(tmp_path: Path) -> None:
    world = World(tmp_path, repository=[yaml.safe_load(STORY_2)])
    world.add("nodepools", compute_class_pool("cloud.example.com"))
    for dialect in Dialect:
        plan = world.plan(dialect)
        assert demand_of(plan, "testing-capacity")["desired"] == 40
        (finding,) = [item for item in plan["findings"] if item["code"] == "target-in-another-group"]
        assert "of the API group apps: my-custom-class of cloud.example.com is taken" in finding["message"]
        assert (finding["file"], finding["line"]) == ("documents.yaml", 11)


def test_the_proposals_spelling_is_read_in_a_cluster_too(tmp_path: Path) -> None:
    """That serves somebody else's definition, made from the proposal's examples."""
    story = yaml.safe_load(STORY_2)
    story["apiVersion"] = story.pop("apiversion")
    world = World(tmp_path).add("buffers", story).add("nodepools", compute_class_pool("cloud.example.com"))
    assert counts(world, "testing-capacity") == {"karpenter": 40, "ca": 40}


@pytest.mark.parametrize(
    ("hard", "status"),
    [
        ({"requests.cpu": "10"}, "False"),
        ({"cpu": "3"}, "True"),
        ({"memory": "1Gi"}, None),
        ({"pods": "1"}, None),
        ({}, None),
    ],
)
def test_quotas_are_spoken_of_only_where_one_was_compared(hard: Document, status: str | None, tmp_path: Path) -> None:
    world = World(tmp_path).add("resourcequotas", quota({"hard": hard}))
    world.add("podtemplates", pod_template("t", {"containers": [{"requests": {"cpu": "1"}}]}))
    world.add("capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "replicas": 6}))
    limited = condition(demand_of(world.plan(Dialect.CLUSTER_AUTOSCALER)), "LimitedByQuotas")
    assert (None if limited is None else limited["status"]) == status


# ResourceQuotas as Cluster Autoscaler applies them to buffers, asked of `headroom plan` as a person would.

CA = "buffers_ca.yaml"


@for_each(cases_in(CA, "quota"))
def test_quotas_cap_buffers_oldest_first(case: Case, tmp_path: Path) -> None:
    """Named against the alphabet, so that only their ages put them in order."""
    given = case["input"]
    names = [f"b{9 - index}" for index in range(len(given["buffers"]))]
    world = with_quotas(tmp_path, given, names)
    plan = world.plan(Dialect.CLUSTER_AUTOSCALER)
    rows = [demand_of(plan, name) for name in names]
    assert [row["desired"] for row in rows] == case["expect"]["replicas"]
    assert [limiting(row) for row in rows] == case["expect"]["limitedBy"]
    karpenter = world.plan(Dialect.KARPENTER)
    for name, item in zip(names, given["buffers"], strict=True):
        row = demand_of(karpenter, name)
        assert row["desired"] == item["replicas"], "Karpenter does not look at quotas"
        assert condition(row, "LimitedByQuotas") is None


@for_each(cases_in(CA, "quota_scope"))
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


@for_each(cases_in(CA, "steps"))
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
