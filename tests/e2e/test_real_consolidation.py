"""Held nodes become smaller on real Karpenter: the cheaper room comes first, nobody waits, and the buffer stays full."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import NODE_POOL, Shop, buffer_of, deployment
from tests.git_repository import GitRepository

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
POOL = (
    NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: 10s")
    .replace('values: ["4", "8"]', 'values: ["2", "4", "8", "16", "32", "64"]')
    .replace('limits: {cpu: "200"}', 'limits: {cpu: "400"}')
)


@pytest.fixture
def repository_of_the_shop(repository: GitRepository) -> GitRepository:
    repository.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(2)})
    return repository


@pytest.fixture
def daemon(
    shop: Shop,  # noqa: ARG001 - asked for what it does
    repository_of_the_shop: GitRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[DaemonProcess]:
    with DaemonProcess(repository_of_the_shop.work, kubeconfig, tmp_path) as running:
        yield running


def sizes(shop: Shop) -> list[int]:
    """CPUs of each node that is there, the largest first."""
    labels = (node["metadata"]["labels"] for node in shop.api.list("v1", "Node"))
    return sorted((int(label[INSTANCE_TYPE].split("-")[1].removesuffix("x")) for label in labels), reverse=True)


def shrinks(shop: Shop, most: int, *, pods: int, chunks: int) -> None:
    """The nodes have no more CPUs than that in the end, and on the way no pod waited and the buffer stayed full."""
    missing: list[str] = []

    def is_small() -> bool:
        waiting = [pod["metadata"]["name"] for pod in shop.pods() if not pod["spec"].get("nodeName")]
        told = {item["type"]: item for item in shop.buffer().get("status", {}).get("conditions", [])}
        if told.get("Provisioning", {}).get("status") != "True":
            missing.append(str(told.get("Provisioning", {}).get("message")))
        missing.extend(waiting)
        return len(shop.running()) == pods and sum(sizes(shop)) <= most

    eventually(is_small, within=240, what=f"nodes of {most} CPUs in all, and not {sizes(shop)}", every=0.5)
    sys.stdout.write(
        f"{pods} pods and {chunks} chunks on nodes of {sizes(shop)} CPUs; not full or waiting: {missing}\n"
    )
    assert len(missing) <= 4, missing  # a pod that Karpenter moved was seen before it was bound


@pytest.mark.e2e
def test_the_node_of_sixty_pods_shrinks_with_them(shop: Shop, daemon: DaemonProcess) -> None:
    shop.api.apply(deployment(60))
    shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
    # Pods that still wait for their first node would be counted as pods that the smaller nodes kept waiting.
    eventually(lambda: len(shop.running()) == 60, within=90, what="60 pods run", every=0.5)
    daemon.wait_until_settled(shop.api)
    assert sizes(shop)[0] >= 32, sizes(shop)
    shop.scale(2)
    shrinks(shop, 8, pods=2, chunks=2)


@pytest.mark.e2e
def test_the_node_of_an_empty_buffer_shrinks_with_it(
    shop: Shop, daemon: DaemonProcess, repository_of_the_shop: GitRepository
) -> None:
    shop.api.apply(deployment(0))
    repository_of_the_shop.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(14)})
    shop.wait_for_buffer("FitsExistingCapacity", replicas=14)
    daemon.wait_until_settled(shop.api)
    assert sum(sizes(shop)) >= 16, sizes(shop)
    repository_of_the_shop.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(1)})
    shrinks(shop, 2, pods=0, chunks=1)
