"""`headroom release --all` on real Karpenter: every node that headroom held may be consolidated again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.controlplane.rest import Document
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import BUFFER_OF_FOUR, NODE_POOL, POOL, Shop

pytestmark = pytest.mark.e2e

HOLD = "karpenter.sh/do-not-disrupt"
MARK = "headroom.dev/held"
EIGHT_CPUS = NODE_POOL.replace('values: ["4", "8"]', 'values: ["8"]')
"""Ten pods of 1 CPU leave room on two such nodes, but not for a buffer of eight: it needs held nodes of both sorts."""
BUFFER: dict[str, str | None] = {"buffers/web.yaml": BUFFER_OF_FOUR.replace("percentage: 40", "percentage: 80")}


def marked(documents: list[Document]) -> set[str]:
    """The names of those that carry a hold, headroom's mark beside it, or its taint."""
    return {
        item["metadata"]["name"]
        for item in documents
        if {HOLD, MARK} & item["metadata"].get("annotations", {}).keys()
        or MARK in {taint["key"] for taint in item["spec"].get("taints", ())}
    }


def release_all(kubeconfig: Path) -> list[str]:
    """The command with headroom's own account; its lines."""
    command = [str(Path(sys.executable).with_name("headroom")), "release", "--all", "--cluster=kubeconfig"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_released_nodes_are_consolidated_by_karpenter(
    shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    repository.push({"nodepool.yaml": EIGHT_CPUS})
    with DaemonProcess(repository.folder, kubeconfig, tmp_path):
        eventually(lambda: shop.api.get(*POOL, "general"), within=60, what="the NodePool is applied", every=0.5)
        shop.deploy()
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        before = {claim["metadata"]["name"] for claim in shop.claims()}
        repository.push(BUFFER)
        shop.wait_for_buffer("FitsExistingCapacity", replicas=8)
    placeholders = {claim["metadata"]["name"] for claim in shop.placeholders()}
    claims, nodes = marked(shop.claims()), marked(shop.api.list("v1", "Node"))
    assert claims & placeholders, "a placeholder is held"
    assert claims & before, "a node that was there before is held"
    assert len(nodes) == len(claims)

    told = release_all(kubeconfig)

    assert set(told) == {f"NodeClaim/{name} released" for name in claims} | {f"Node/{name} released" for name in nodes}
    assert not marked(shop.claims()) | marked(shop.api.list("v1", "Node"))
    shop.scale(0)
    eventually(lambda: shop.claims() == [], within=120, what="Karpenter has removed every empty node", every=0.5)
