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


def test_a_commit_makes_warm_nodes_that_pods_take_at_once_and_karpenter_has_back_in_the_end(
    shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """A pool and a buffer of four beside a Deployment of ten."""
    repository.commit({"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR})
    shop.deploy()
    with DaemonProcess(repository.work, kubeconfig, tmp_path):
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        buffer = shop.wait_for_buffer("FitsExistingCapacity")
        assert condition(buffer, "ReadyForProvisioning") == "True"
        assert condition(buffer, "Provisioning") == "True"
        see_placeholders(shop)

        see_a_scale_up_of_the_buffers_size(shop)
        # forty percent of fourteen, rounded up
        shop.wait_for_buffer("FitsExistingCapacity", replicas=6)

        shop.scale(0)
        shop.wait_for_buffer("BufferEmpty", replicas=0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed every empty node", every=0.5)
        shop.scale(10)
        shop.wait_for_buffer("FitsExistingCapacity")
        repository.commit({"buffers/web.yaml": None}, "--message=Headroom-Allow-Removals: true")
        eventually(lambda: not shop.buffer(), within=60, what="the buffer is pruned from the cluster", every=0.5)

        def unheld() -> bool:
            return all(not claim["metadata"].get("annotations", {}).get(HOLD) for claim in shop.claims())

        eventually(unheld, within=60, what="every hold is released", every=0.5)
        shop.scale(0)
        eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed the nodes", every=0.5)


def see_placeholders(shop: Shop) -> None:
    """With everything that Karpenter asks for."""
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


def see_a_scale_up_of_the_buffers_size(shop: Shop) -> None:
    """No pod waits for a node."""
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
