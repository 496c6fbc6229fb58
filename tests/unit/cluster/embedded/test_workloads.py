"""How replicas become pods in the embedded cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.refs import ObjectRef
from tests.builders import manifest, node_manifest
from tests.fakes.clock import ManualClock
from tests.fakes.embedded import Document, Sandbox, node_claim, workload, workload_ref
from tests.fakes.played_cluster import PlayedCluster
from tests.manifests import snapshot_in
from tests.unit.cluster.documents import pod


def names(sandbox: Sandbox) -> list[str]:
    return sorted(sandbox.where())


def test_a_stateful_sets_pods_are_numbered_and_the_highest_goes_first() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(workload("db", kind="StatefulSet", replicas=3))
    assert names(sandbox) == ["db-0", "db-1", "db-2"]
    sandbox.cluster.scale(workload_ref("db", "StatefulSet"), 1)
    assert names(sandbox) == ["db-0"]


def test_a_daemon_set_runs_on_every_node_that_it_may_run_on_also_on_later_ones() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a")
    sandbox.cluster.apply(workload("agent", kind="DaemonSet"))
    sandbox.add_node("b")
    sandbox.add_node("c", taints=[{"key": "team", "value": "shop", "effect": "NoSchedule"}])
    assert sorted(node or "" for node in sandbox.where().values()) == ["node-a", "node-b"]
    assert {pod.owner_kind for pod in sandbox.cluster.view().pods} == {"DaemonSet"}


# Snapshots


def opened(folder: Path, clock: ManualClock | None = None, **lists: list[Document]) -> PlayedCluster:
    snapshot_in(folder, lists)
    return PlayedCluster.from_snapshot(folder, clock or ManualClock(), real_time=False)


def test_pods_of_a_snapshot_are_adopted_not_made_twice(tmp_path: Path) -> None:
    running = running_pod("web-old-1", "ReplicaSet", "web-old", node="node-1")
    node = node_manifest("node-1", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    cluster = opened(tmp_path, pods=[running], nodes=[node], workloads=[workload(replicas=2, cpu="1")])
    pods = cluster.view().pods
    assert sorted(pod.name == "web-old-1" for pod in pods) == [False, True]
    assert {(pod.owner_name, pod.node_name) for pod in pods} == {("web-old", "node-1")}


def running_pod(name: str, kind: str, owner: str, *, node: str = "gone") -> Document:
    found = pod(name, cpu="750m", node=node)
    found["metadata"]["labels"]["added"] = "by-a-webhook"
    found["metadata"]["ownerReferences"] = [{"apiVersion": "x/v1", "kind": kind, "name": owner, "controller": True}]
    return found


def scale_of(kind: str, *, replicas: int) -> Document:
    status = {"replicas": 1, "selector": "app=web"}
    return manifest("example.com/v1", kind, "web", "shop", spec={"replicas": replicas}, status=status)


def test_a_kind_with_a_scale_has_pods_like_its_newest(tmp_path: Path) -> None:
    pods = [running_pod("web-1", "CloneSet", "web")]
    cluster = opened(tmp_path, pods=pods, workloads=[scale_of("CloneSet", replicas=1)])
    ref = ObjectRef("example.com", "CloneSet", "shop", "web")
    assert ("example.com", "CloneSet") in cluster.view().apis
    cluster.scale(ref, 3)
    view = cluster.view()
    assert len(view.pods) == 3
    assert {pod.shape.requests.get("cpu") for pod in view.pods} == {750}
    assert {(pod.owner_kind, pod.owner_name) for pod in view.pods} == {("CloneSet", "web")}
    assert sorted(pod.node_name or "" for pod in view.pods) == ["", "", "gone"]
    (seen,) = view.workloads
    assert (seen.ref, seen.replicas, seen.observed_replicas, seen.shape) == (ref, 3, 3, None)
    cluster.scale(ref, 1)
    assert [pod.name for pod in cluster.view().pods] == ["web-1"]


def test_a_rollouts_pods_belong_to_its_replica_set(tmp_path: Path) -> None:
    replica_set = workload("web", kind="ReplicaSet", replicas=1)
    replica_set["metadata"] |= {
        "name": "web-abc",
        "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Rollout", "name": "web", "uid": "u"}],
    }
    pods = [running_pod("web-abc-1", "ReplicaSet", "web-abc")]
    lists = [replica_set, scale_of("Rollout", replicas=1)]
    cluster = opened(tmp_path, pods=pods, workloads=lists)
    cluster.scale(ObjectRef("example.com", "Rollout", "shop", "web"), 4)
    assert {pod.owner_name for pod in cluster.view().pods} == {"web-abc"}
    assert len(cluster.view().pods) == 4


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"spec": {"suspend": True}}, 0),
        ({"status": {"succeeded": 3}}, 1),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, 0),
        ({}, 2),
    ],
)
def test_a_job_of_a_snapshot_has_the_pods_that_are_left(tmp_path: Path, changes: Document, count: int) -> None:
    job = workload("batch", kind="Job", replicas=0) | {"apiVersion": "batch/v1"}
    job["spec"] |= {"parallelism": 2, "completions": 4, **changes.get("spec", {})}
    job["status"] = changes.get("status", {})
    assert len(opened(tmp_path, workloads=[job]).view().pods) == count


def test_a_node_claim_in_the_middle_of_its_life_goes_on(tmp_path: Path) -> None:
    launched = node_claim("a", "m-2x")
    launched["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    launched["spec"]["expireAfter"] = "720h"
    launched["status"] = {
        "providerID": "test://a",
        "capacity": {"cpu": "2"},
        "allocatable": {"cpu": "1900m"},
        "conditions": [{"type": "Launched", "status": "True"}],
    }
    clock = ManualClock()
    cluster = opened(tmp_path, clock, nodeclaims=[launched])
    clock.advance(60)
    assert [node.name for node in cluster.view().nodes] == ["node-a"]
