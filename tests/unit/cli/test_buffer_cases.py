"""Buffers as Karpenter and Cluster Autoscaler read them, asked of `headroom plan` as a person would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.manifests.instance_types import instance_types_document
from reconciler.model.buffers import Dialect
from reconciler.model.quantity import Resources
from tests import builders
from tests.case_files import Case, cases_in, for_each
from tests.fakes.embedded import node_claim, node_pool
from tests.unit.cli.buffer_documents import (
    Document,
    World,
    buffer,
    condition,
    demand_of,
    in_cluster,
    in_repository,
    placed_and_not,
    pod_template,
    readiness,
)
from tests.unit.cli.two_folders import node

KARPENTER, CA = "buffers_karpenter.yaml", "buffers_ca.yaml"
DIALECTS = {KARPENTER: Dialect.KARPENTER, CA: Dialect.CLUSTER_AUTOSCALER}

DECIDED_OTHERWISE: Mapping[str, tuple[int | None, str, str]] = {
    # case → (chunks, reason of ReadyForProvisioning, why)
    "container-limits-do-not-become-requests": (
        2,
        "Resolved",
        "the API server turns limits into requests when the pods come, so chunks without them would be too small",
    ),
    "replication-controller-unsupported": (
        None,
        "ScalableRefNotFound",
        "ReplicationControllers are supported here; this one is not there",
    ),
    "replication-controller-empty-group-fails": (2, "Resolved", "the empty API group is the core group's name"),
    "both-references-scalable-wins": (None, "ResolutionFailed", "the CRD's own rule refuses both references"),
}
ONLY_IN_A_CLUSTER = {"both-references-scalable-wins", "template-max-int32"}
"""With documents that are errors in a repository: both references, and a pod without a container."""
WITHOUT_COUNTERPART: Mapping[str, str] = {
    "managed_template_name": "Cluster Autoscaler copies shapes into PodTemplates of its own; headroom writes none",
    "filter_status": "which of its own buffers a loop of Cluster Autoscaler looks at again; a pass here looks at all",
    "filter_template_generation": "the same",
    "inject": "Cluster Autoscaler reads its own status back; a pass here decides from the spec",
    "scale_up_report": "on the report of Cluster Autoscaler's scale-up, which names pods that do not exist",
    "scale_up_events": "the same",
    "conditions_kept": "conditions of others are kept by the API server: each manager applies its own",
    "virtual_pod_identity": "marks on virtual pods in Karpenter's memory; headroom's chunks never become pods",
}
NOTHING_TO_SHOW: Mapping[str, str] = {
    "fewer-observed-than-desired": "between two passes of Karpenter; a pass here places every chunk or says why not",
    "replicas-unset-excluded": "a status that nobody has written yet; a pass here decides from the spec",
}

Build = Callable[..., World]


def parametrized(file: str, *kinds: str) -> pytest.MarkDecorator:
    return for_each([case for case in cases_in(file, *kinds) if case["name"] not in NOTHING_TO_SHOW])


def resolved(file: str) -> pytest.MarkDecorator:
    """Each case with its documents in the cluster, and with those in a repository that may be there."""
    pairs = [
        pytest.param(case, build, id=f"{case['name']} {build.__name__}")
        for case in cases_in(file, "resolve")
        for build in (in_cluster, in_repository)
        if build is in_cluster or case["name"] not in ONLY_IN_A_CLUSTER
    ]
    return pytest.mark.parametrize(("case", "build"), pairs)


def row_of(case: Case, build: Build, folder: Path, dialect: Dialect) -> Document:
    given = case["input"]
    return demand_of(build(folder, given["objects"], buffer(given["buffer"])).plan(dialect))


@resolved(KARPENTER)
def test_a_buffer_as_karpenter_resolves_it(case: Case, build: Build, tmp_path: Path) -> None:
    row = row_of(case, build, tmp_path, Dialect.KARPENTER)
    (expected,) = case["expect"]["conditions"]
    count, reason, _ = DECIDED_OTHERWISE.get(case["name"], (case["expect"]["replicas"], expected["reason"], ""))
    assert row["desired"] == count
    assert readiness(row) == ("False" if count is None else "True", reason)
    assert placed_and_not(row) == (count or 0)


@resolved(CA)
def test_a_buffer_as_cluster_autoscaler_resolves_it(case: Case, build: Build, tmp_path: Path) -> None:
    """Reasons are Karpenter's in both dialects, so only readiness is compared here."""
    row = row_of(case, build, tmp_path, Dialect.CLUSTER_AUTOSCALER)
    count, _, _ = DECIDED_OTHERWISE.get(case["name"], (case["expect"]["replicas"], "", ""))
    assert row["desired"] == count
    assert readiness(row)[0] == ("False" if count is None else "True")


@parametrized(CA, "number_of_pods")
def test_the_number_of_chunks_as_cluster_autoscaler_counts(case: Case, tmp_path: Path) -> None:
    """In the cluster, which may hold negative numbers from before the definition forbade them."""
    given = case["input"]
    spec = {key: given[key] for key in ("replicas", "percentage", "limits") if key in given}
    target: Document = {
        "kind": "PodTemplate",
        "name": "w",
        "podSpec": {"containers": [{"requests": given["podRequests"]}]},
    }
    reference: Document = {"podTemplateRef": {"name": "w"}}
    if "scalableReplicas" in given:
        target |= {"kind": "Deployment", "replicas": given["scalableReplicas"]}
        reference = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "w"}}
    row = demand_of(in_cluster(tmp_path, [target], buffer(spec | reference)).plan(Dialect.CLUSTER_AUTOSCALER))
    assert row["desired"] == case["expect"].get("replicas")
    assert (readiness(row)[0] == "False") == case["expect"].get("error", False)


@parametrized(KARPENTER, "limit_replicas")
def test_how_many_chunks_fit_into_limits(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    assert case["expect"]["applies"]
    world = in_repository(
        tmp_path,
        [{"kind": "PodTemplate", "name": "t", "podSpec": given["podSpec"]}],
        buffer({"podTemplateRef": {"name": "t"}, "limits": given["limits"]}),
    )
    assert demand_of(world.plan(Dialect.KARPENTER))["desired"] == case["expect"]["replicas"]


@parametrized(KARPENTER, "percentage")
def test_percentages_are_rounded_up(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    reference = {"apiGroup": "apps", "kind": "Deployment", "name": "w"}
    world = in_repository(
        tmp_path,
        [{"kind": "Deployment", "name": "w", "podSpec": {"containers": [{}]}, "replicas": given["scalableReplicas"]}],
        buffer({"scalableRef": reference, "percentage": given["percentage"]}),
    )
    assert demand_of(world.plan(Dialect.KARPENTER))["desired"] == case["expect"]["replicas"]


@pytest.mark.parametrize(
    ("file", "case"),
    [
        pytest.param(file, case, id=case["name"])
        for file, kind in ((KARPENTER, "pod_requests"), (CA, "pod_defaulting"))
        for case in cases_in(file, kind)
    ],
)
def test_what_a_chunk_requests(file: str, case: Case, tmp_path: Path) -> None:
    """Seen by the limits that two chunks of it just fit into, and by one unit less, which only one does."""
    requests = _expected_requests(case)
    template = {"kind": "PodTemplate", "name": "t", "podSpec": case["input"]["podSpec"]}

    def chunks(limits: Mapping[str, str]) -> int | None:
        world = in_repository(tmp_path, [template], buffer({"podTemplateRef": {"name": "t"}, "limits": limits}))
        count: int | None = demand_of(world.plan(DIALECTS[file]))["desired"]
        return count

    if not requests:
        assert chunks({"cpu": "1", "memory": "1Gi"}) == 0
    for name, amount in requests:
        unit = "m" if name == "cpu" else ""
        assert chunks({name: f"{amount * 2}{unit}"}) == 2
        assert chunks({name: f"{amount * 2 - 1}{unit}"}) == 1


def _expected_requests(case: Case) -> Resources:
    """Of the whole pod: the pod's own requests, else the larger of its containers' and its init containers'."""
    expected = case["expect"]
    if "requests" in expected:
        return Resources.parse(expected["requests"])
    containers = Resources.total(map(Resources.parse, expected["containers"]))
    for container in expected.get("initContainers", ()):
        containers = containers.at_least(Resources.parse(container))
    return Resources.of(dict(containers) | dict(Resources.parse(expected.get("pod"))))


@parametrized(CA, "filter_strategy")
def test_other_strategies_are_not_provisioned(case: Case, tmp_path: Path) -> None:
    """Cluster Autoscaler ignores them without a word; here the condition and a finding say so."""
    buffers = [
        buffer({"provisioningStrategy": strategy, "podTemplateRef": {"name": "t"}, "replicas": 1}, name)
        for name, strategy in case["input"]["buffers"].items()
    ]
    template = {"kind": "PodTemplate", "name": "t", "podSpec": {"containers": [{}]}}
    for dialect in Dialect:
        plan = in_cluster(tmp_path, [template], *buffers).plan(dialect)
        assert [row["name"] for row in plan["demands"] if row["desired"] is not None] == case["expect"]["kept"]
        assert [finding["code"] for finding in plan["findings"]] == ["unknown-strategy"] * len(buffers)


@parametrized(KARPENTER, "steps")
def test_a_buffer_that_is_deleted_asks_for_nothing(case: Case, tmp_path: Path) -> None:
    first, last = case["input"]["steps"]
    assert last == {"deleteBuffer": True}
    worlds = (
        in_cluster(tmp_path / "there", first["apply"], buffer(first["buffer"])),
        in_cluster(tmp_path / "gone", first["apply"]),
    )
    plans = [world.plan(Dialect.KARPENTER) for world in worlds]
    counts = [sum(map(placed_and_not, plan["demands"])) for plan in plans]
    assert counts == [step["virtualPods"] for step in case["expect"]["after"]]


@parametrized(KARPENTER, "provisioning_condition")
def test_what_provisioning_says(case: Case, tmp_path: Path) -> None:
    template = {"kind": "PodTemplate", "name": "t", "podSpec": {"containers": [{}]}}
    spec = {"podTemplateRef": {"name": "t"}, "replicas": case["input"]["statusReplicas"]}
    row = demand_of(in_cluster(tmp_path, [template], buffer(spec)).plan(Dialect.KARPENTER))
    found = condition(row, "Provisioning")
    assert found is not None
    assert {key: found[key] for key in ("type", "status", "reason")} == case["expect"]["condition"]


@parametrized(KARPENTER, "virtual_pods_count")
def test_which_buffers_have_chunks(case: Case, tmp_path: Path) -> None:
    """One that is not ready has none, whatever its status said before."""
    given = case["input"]
    spec = dict(given["buffer"]) | {"replicas": given["statusReplicas"]}
    templates = [{"kind": "PodTemplate", "name": "t", "podSpec": {"containers": [{}]}}]
    stale = buffer(spec) | {"status": {"replicas": given["statusReplicas"]}}
    row = demand_of(in_cluster(tmp_path, templates, stale).plan(Dialect.KARPENTER))
    assert (readiness(row)[0]) == given["readyForProvisioning"]
    assert placed_and_not(row) == case["expect"]["virtualPods"]


@parametrized(KARPENTER, "virtual_pod_shape", "virtual_pod_volumes")
def test_what_a_virtual_pod_cannot_have_keeps_no_chunk_from_a_node(case: Case, tmp_path: Path) -> None:
    """A node's name, a priority or a volume made for one pod: the chunks are placed on any node with room."""
    given = case["input"]
    template = given.get("template", {})
    spec: Document = {"containers": [{"requests": {"cpu": "1"}}], **template.get("spec", {})}
    if "volumes" in given:
        spec["volumes"] = [_volume(item) for item in given["volumes"]]
    count = given.get("buffer", {}).get("replicas", 1)
    world = World(tmp_path).add("podtemplates", pod_template("t", spec, template.get("labels")))
    world.add("capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "replicas": count}))
    world.add("nodes", _node("n1", cpu="8")[0])
    row = demand_of(world.plan(Dialect.KARPENTER))
    assert row["desired"] == row["onExisting"] == case["expect"].get("count", 1)


def _volume(given: Mapping[str, Any]) -> Document:
    kinds = {
        "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}},
        "configMap": {"name": "c"},
    }
    return {"name": given["name"], given["kind"]: kinds[given["kind"]]}


def _node(name: str, *, cpu: str) -> tuple[Document, Document]:
    """A node of pool `general` and its NodeClaim."""
    claim = node_claim(f"claim-{name}", "m-2x")
    claim["status"] = {"nodeName": name, "providerID": name}
    return node(name, "general", cpu=cpu), claim


@parametrized(KARPENTER, "empty_node_protection")
def test_nodes_that_hold_chunks_are_kept_from_being_taken_as_empty(case: Case, tmp_path: Path) -> None:
    given = case["input"]["nodes"]
    world = World(tmp_path).add("nodepools", node_pool(consolidate_after="0s"))
    for name, pods in given.items():
        node, claim = _node(name, cpu=str(pods["bufferPods"]))
        world.add("nodes", node).add("nodeclaims", claim)
    count = sum(pods["bufferPods"] for pods in given.values())
    world.add("podtemplates", pod_template("t", {"containers": [{"requests": {"cpu": "1"}}]}))
    world.add("capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "replicas": count}))
    plan = world.plan(Dialect.KARPENTER)
    held = {item["node"] for item in plan["nodeClaims"]["hold"]}
    assert sorted(set(given) - held) == case["expect"]["deletedAsEmpty"]
    assert demand_of(plan)["onExisting"] == count


@parametrized(KARPENTER, "classify")
def test_chunks_of_two_buffers_on_old_and_new_nodes(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    (room,) = (sum(found.values()) for found in given["existingNodes"].values())
    world = World(tmp_path).add("nodepools", node_pool())
    node, claim = _node("n1", cpu=str(room))
    world.add("nodes", node).add("nodeclaims", claim)
    world.add("podtemplates", pod_template("t", {"containers": [{"requests": {"cpu": "1"}}]}))
    for item in given["buffers"]:
        world.add(
            "capacitybuffers", buffer({"podTemplateRef": {"name": "t"}, "replicas": item["replicas"]}, item["name"])
        )
    catalog = tmp_path / "types.json"
    catalog.write_text(json.dumps(instance_types_document([builders.instance_type()])))
    plan = world.plan(Dialect.KARPENTER, "--catalog", str(catalog))
    for name, expected in case["expect"]["perBuffer"].items():
        row = demand_of(plan, name.partition("/")[2])
        assert row["onExisting"] == expected["onExistingNodes"]
        assert row["onNew"] == expected["onNewNodes"]
        assert row["unplaced"] == expected["failed"]
        assert row["desired"] == expected["desired"]


def test_every_case_is_run_or_named_with_a_reason() -> None:
    run = {
        KARPENTER: {
            "resolve", "steps", "limit_replicas", "percentage", "pod_requests", "provisioning_condition", "classify",
            "virtual_pods_count", "virtual_pod_shape", "virtual_pod_volumes", "empty_node_protection",
        },
        CA: {"resolve", "steps", "number_of_pods", "quota", "quota_scope", "filter_strategy", "pod_defaulting"},
    }  # fmt: skip
    for file, kinds in run.items():
        assert {case["kind"] for case in cases_in(file)} - set(WITHOUT_COUNTERPART) == kinds
    named = {case["name"] for file in run for case in cases_in(file)}
    assert set(DECIDED_OTHERWISE) | ONLY_IN_A_CLUSTER | set(NOTHING_TO_SHOW) <= named
    assert set(WITHOUT_COUNTERPART) <= {case["kind"] for file in run for case in cases_in(file)}
