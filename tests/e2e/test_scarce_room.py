"""`placement.surge: all` on real Karpenter: scarce room is marked, Karpenter minds the mark in no way, and nobody waits.

Pods of web go anywhere, those of batch to one NodePool. Each buffer has a node that is full with one pod.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.controlplane.rest import Document, condition
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import Shop, buffer_of
from tests.e2e.warm_nodes import POOL, web
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

SCARCE = "headroom.dev/scarce"
FIRST_POOL = POOL.replace("spec:\n  limits", "spec:\n  weight: 10\n  limits")
BATCH_POOL = POOL.replace("  name: general\n", "  name: batch\n")
PODS = ("apps/v1", "Deployment")


def batch(replicas: int) -> Document:
    document = web(replicas, name="batch")
    document["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "batch"}
    return document


def scarce(shop: Shop) -> list[str]:
    """The NodePools of nodes with the mark."""
    return [
        node["metadata"]["labels"]["karpenter.sh/nodepool"]
        for node in shop.api.list("v1", "Node")
        if any(taint["key"] == SCARCE for taint in node["spec"].get("taints") or ())
    ]


def bound(shop: Shop, app: str) -> bool:
    pods = [pod for pod in shop.pods() if pod["metadata"]["labels"].get("app") == app]
    return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)


def test_scarce_room_is_marked_and_nobody_waits(
    shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    shop.api.apply(web(0))
    shop.api.apply(batch(0))
    buffers = buffer_of(1), buffer_of(1).replace("name: web", "name: batch")
    repository.commit(
        {
            "pool.yaml": FIRST_POOL,
            "batch.yaml": BATCH_POOL,
            "buffers/web.yaml": buffers[0],
            "buffers/batch.yaml": buffers[1],
        }
    )
    with DaemonProcess(repository.work, kubeconfig, tmp_path, placement_surge="all") as daemon:
        eventually(lambda: scarce(shop) == ["batch"], within=120, what="the room of batch is marked", every=0.5)
        daemon.wait_until_settled(shop.api)
        before = {claim["metadata"]["name"] for claim in shop.claims()}
        assert len(before) == 2
        for name in ("web", "batch"):
            shop.api.patch(*PODS, name, {"spec": {"replicas": 1}}, namespace="shop")
            eventually(lambda: bound(shop, name), within=30, what=f"{name}'s pod has a node", every=0.2)  # noqa: B023
        used = {pod["spec"]["nodeName"] for pod in shop.pods()}
        there = {claim["metadata"]["name"]: claim for claim in shop.claims()}
        assert used == {there[name]["status"]["nodeName"] for name in before}, "each in the room that was there before"
        assert not [name for name, claim in there.items() if condition(claim, "Drifted") == "True"]
