"""From a pushed commit to a warm node on real Karpenter, and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import condition
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.shop import BUFFER_OF_FOUR, CLAIM, NODE_POOL, Shop, deployment

pytestmark = pytest.mark.e2e

HOLD = "karpenter.sh/do-not-disrupt"


@pytest.fixture
def warm(shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path) -> DaemonProcess:
    """The daemon, not started yet, on a repository with a pool and a buffer of four, and a Deployment of ten."""
    repository.push({"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR})
    shop.deploy()
    return DaemonProcess(repository.folder, kubeconfig, tmp_path)


def test_a_commit_makes_placeholders_with_everything_karpenter_asks_for(warm: DaemonProcess, shop: Shop) -> None:
    with warm:
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        buffer = shop.wait_for_buffer("FitsExistingCapacity")
        conditions = {item["type"]: item for item in buffer["status"]["conditions"]}
        assert conditions["ReadyForProvisioning"]["status"] == "True"
        assert conditions["Provisioning"]["status"] == "True"

        pool = shop.api.get("karpenter.sh/v1", "NodePool", "general")
        assert pool is not None
        for claim in shop.wait_for_placeholders():
            metadata, spec = claim["metadata"], claim["spec"]
            assert metadata["labels"]["karpenter.sh/nodepool"] == "general"
            assert metadata["labels"]["team"] == "shop"
            assert metadata["labels"]["example.com/tier"] in {"gold", "silver"}
            assert metadata["annotations"]["example.com/owner"] == "platform"
            for annotation in ("karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"):
                assert metadata["annotations"][annotation] == pool["metadata"]["annotations"][annotation]
            assert [owner["uid"] for owner in metadata["ownerReferences"]] == [pool["metadata"]["uid"]]
            assert spec["taints"] == [{"key": "dedicated", "value": "shop", "effect": "NoSchedule"}]
            assert spec["expireAfter"] == "720h"
            requirements = {item["key"]: item for item in spec["requirements"]}
            assert requirements["node.kubernetes.io/instance-type"]["values"]
            assert requirements["karpenter.sh/nodepool"]["values"] == ["general"]
            assert condition(claim, "Drifted") != "True"
            assert condition(claim, "Ready") == "True"
            if metadata["annotations"].get(HOLD):
                node = shop.node(claim["status"]["nodeName"])
                assert node["metadata"]["annotations"][HOLD] == "true"


def test_a_scale_up_of_the_buffers_size_waits_for_no_node_and_the_buffer_refills(
    warm: DaemonProcess, shop: Shop
) -> None:
    with warm:
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        shop.wait_for_buffer("FitsExistingCapacity")
        before = {pod["metadata"]["name"] for pod in shop.pods()}
        nodes = {node["metadata"]["name"] for node in shop.api.list("v1", "Node")}
        shop.scale(14)
        eventually(lambda: len(shop.running()) == 14, within=30, what="all fourteen pods run", every=0.2)
        fresh = [pod for pod in shop.running() if pod["metadata"]["name"] not in before]
        assert len(fresh) == 4
        assert {pod["spec"]["nodeName"] for pod in fresh} <= nodes, "a new pod runs on a node that was not there before"
        for pod in fresh:
            scheduled = next(item for item in pod["status"]["conditions"] if item["type"] == "PodScheduled")
            assert scheduled["status"] == "True"
        events = [
            event
            for event in shop.api.list("v1", "Event", namespace="shop")
            if event["reason"] == "FailedScheduling"
            and event["involvedObject"]["name"] in {pod["metadata"]["name"] for pod in fresh}
        ]
        assert events == []
        # forty percent of fourteen, rounded up
        shop.wait_for_buffer("FitsExistingCapacity", replicas=6)


def test_deleting_the_buffer_in_git_hands_its_nodes_back_to_karpenter(
    warm: DaemonProcess, shop: Shop, repository: CapacityRepository
) -> None:
    with warm:
        shop.wait_for_buffer("FitsExistingCapacity")
        shop.scale(0)
        shop.wait_for_buffer("BufferEmpty", replicas=0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed every empty node", every=0.5)
        shop.scale(10)
        shop.wait_for_buffer("FitsExistingCapacity")
        repository.push({"buffers/web.yaml": None})
        eventually(lambda: not shop.buffer(), within=60, what="the buffer is pruned from the cluster", every=0.5)

        def unheld() -> bool:
            return all(not claim["metadata"].get("annotations", {}).get(HOLD) for claim in shop.claims())

        eventually(unheld, within=60, what="every hold is released", every=0.5)
        shop.scale(0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed the nodes", every=0.5)


def test_a_bad_commit_keeps_the_last_good_version_and_the_rest_goes_on(
    warm: DaemonProcess, shop: Shop, repository: CapacityRepository
) -> None:
    with warm:
        shop.wait_for_buffer("FitsExistingCapacity")
        claims = {claim["metadata"]["name"] for claim in shop.placeholders()}
        commit = repository.push(
            {
                "nodepool.yaml": NODE_POOL + "\n  broken: [\n",
                "buffers/web.yaml": BUFFER_OF_FOUR.replace("percentage: 40", "percentage: forty"),
                "buffers/other.yaml": (
                    "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: other, namespace: shop}\n"
                    "template: {spec: {containers: [{name: main, image: other:1}]}}\n"
                ),
            }
        )
        eventually(
            lambda: shop.api.get("v1", "PodTemplate", "other", namespace="shop"),
            within=60,
            what="the good document of the bad commit is applied",
            every=0.5,
        )
        eventually(lambda: commit in (warm.status()["revision"] or ""), within=30, what="the commit is taken up")
        findings = warm.status()["findings"]
        assert {"nodepool.yaml", "buffers/web.yaml"} <= {finding["file"] for finding in findings}
        assert all(finding["line"] for finding in findings if finding["severity"] == "error")
        assert 'headroom_findings{severity="error"}' in warm.fetch("/metrics")
        assert shop.buffer()["spec"]["percentage"] == 40
        assert shop.api.get("karpenter.sh/v1", "NodePool", "general") is not None
        assert claims <= {claim["metadata"]["name"] for claim in shop.api.list(*CLAIM)}


def test_a_job_without_the_cluster_plans_on_the_snapshot_that_the_daemon_pushes(
    shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path, empty_control_plane: ControlPlane
) -> None:
    secret = "hunter2"
    web = deployment()
    web["metadata"]["annotations"] = {"example.com/note": secret}
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": secret}]
    shop.api.apply(web)
    metadata = {"name": "web", "namespace": "shop"}
    shop.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": secret}})
    repository.push({"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR})
    mark = empty_control_plane.audit_mark()
    with DaemonProcess(repository.url, kubeconfig, tmp_path, snapshot_publish="true", snapshot_interval="1s") as daemon:
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        shop.wait_for_buffer("FitsExistingCapacity")

        def published() -> set[str]:
            files = repository.snapshot()
            pods = [pod["spec"].get("nodeName") for pod in json.loads(files["pods.json"])["items"]]
            assert pods.count(None) == 0
            assert len(pods) == 10
            nodes = {node["metadata"]["name"] for node in json.loads(files["nodes.json"])["items"]}
            assert nodes == {node["metadata"]["name"] for node in shop.api.list("v1", "Node")}
            return nodes

        nodes = eventually(published, within=60, what="the snapshot has the nodes and the pods on them", every=0.5)
        rests = 'headroom_snapshots_total{result="unchanged"}'
        eventually(lambda: rests in daemon.fetch("/metrics"), within=60, what="nothing is pushed at rest", every=0.5)
    assert [name for name, text in repository.snapshot().items() if secret in text] == []
    asked = [event for event in empty_control_plane.audit_events(since=mark) if event.user == USER]
    assert [event for event in asked if event.resource == "secrets"] == []

    job = repository.clone(tmp_path / "job")
    job.push({"buffers/web.yaml": BUFFER_OF_FOUR.replace("percentage: 40", "percentage: 80")})
    changed = without_a_cluster(job, "diff", "origin/main..HEAD")
    assert "CapacityBuffer/shop/web: 4 → 8 chunks" in changed.stdout, changed.stdout
    assert "planned on published:headroom/snapshot, as of " in changed.stderr
    explained = without_a_cluster(job, "explain", "CapacityBuffer/shop/web")
    assert any(node in explained.stdout for node in nodes), explained.stdout


def without_a_cluster(job: CapacityRepository, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("headroom")), *words],
        cwd=job.folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(job.folder.parent)},
    )
