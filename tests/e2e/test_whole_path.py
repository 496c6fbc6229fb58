"""From a pushed commit to a warm node on real Karpenter, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.controlplane.rest import condition
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import BUFFER_OF_FOUR, NODE_POOL, Shop
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

HOLD = "karpenter.sh/do-not-disrupt"


@pytest.fixture
def warm(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> DaemonProcess:
    """The daemon, not started yet, on a repository with a pool and a buffer of four, and a Deployment of ten."""
    repository.commit({"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR})
    shop.deploy()
    return DaemonProcess(repository.work, kubeconfig, tmp_path)


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
    warm: DaemonProcess, shop: Shop, repository: GitRepository
) -> None:
    with warm:
        shop.wait_for_buffer("FitsExistingCapacity")
        shop.scale(0)
        shop.wait_for_buffer("BufferEmpty", replicas=0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed every empty node", every=0.5)
        shop.scale(10)
        shop.wait_for_buffer("FitsExistingCapacity")
        repository.commit({"buffers/web.yaml": None})
        eventually(lambda: not shop.buffer(), within=60, what="the buffer is pruned from the cluster", every=0.5)

        def unheld() -> bool:
            return all(not claim["metadata"].get("annotations", {}).get(HOLD) for claim in shop.claims())

        eventually(unheld, within=60, what="every hold is released", every=0.5)
        shop.scale(0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed the nodes", every=0.5)
