"""What becomes of held nodes on real Karpenter: they drift, they expire, and they become smaller. The buffer is never short."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import condition
from tests.controlplane.waiting import moments
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.shop import NODE_POOL, Shop, buffer_of, deployment
from tests.e2e.warm_nodes import HOLD, POOL, held_nodes, is_full, provisioning, web
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

LIFE = 72
"""Seconds until a node expires: a quarter of them is left when headroom begins to replace it."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MANY_SIZES = (
    NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: 10s")
    .replace('values: ["4", "8"]', 'values: ["2", "4", "8", "16", "32", "64"]')
    .replace('limits: {cpu: "200"}', 'limits: {cpu: "400"}')
)


def test_four_held_nodes_that_drift_are_replaced_one_at_a_time(
    shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path, empty_control_plane: ControlPlane
) -> None:
    repository.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(4)})
    shop.api.apply(web(0))
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        shop.wait_for_buffer("FitsExistingCapacity")
        old = set(held_nodes(shop))
        assert len(old) == 4
        repository.commit({"nodepool.yaml": POOL.replace("labels: {team: shop}", "labels: {team: shop, color: blue}")})
        changes: Counter[str] = Counter()
        marked: dict[str, bool] = {}
        for _ in moments(within=150, every=0.5):
            nodes = shop.api.list("v1", "Node")
            for node in nodes:
                uid, mark = node["metadata"]["uid"], HOLD in node["metadata"].get("annotations", {})
                changes[uid] += marked.get(uid, True) != mark
                marked[uid] = mark
            assert len(held_nodes(shop)) >= 4, "the buffer is short"
            assert is_full(shop)
            if old.isdisjoint(node["metadata"]["uid"] for node in nodes):
                break
        sys.stdout.write(f"changes of hold by node: {sorted(changes.values())}\n")
        assert old.isdisjoint(held_nodes(shop)), f"{len(old & set(held_nodes(shop)))} old nodes are left"
        assert max(changes.values()) <= 3
        daemon.wait_until_settled(shop.api)
        mark_of_the_log, passes = empty_control_plane.audit_mark(), daemon.status()["passes"]
        eventually(lambda: daemon.status()["passes"] >= passes + 1, within=60, what="one more pass", every=0.5)
        assert empty_control_plane.writes_by(USER, since=mark_of_the_log) == []


def test_two_nodes_of_one_age_are_replaced_one_after_the_other_before_karpenter_ends_them(
    shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    expiring = POOL.replace("expireAfter: 720h", f"expireAfter: {LIFE}s")
    repository.commit({"nodepool.yaml": expiring, "buffers/web.yaml": buffer_of(2)})
    shop.api.apply(web(0))
    with DaemonProcess(repository.work, kubeconfig, tmp_path, passes_interval="2s"):
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        old = held_nodes(shop)
        assert len(old) == 2
        for _ in moments(within=LIFE + 30, every=0.5):
            held = held_nodes(shop)
            assert len(held) >= 2, "the buffer is short"
            assert is_full(shop)
            on_their_way = [claim for claim in shop.placeholders() if condition(claim, "Initialized") != "True"]
            assert len(on_their_way) <= 1, "two are replaced at a time"
            for node in (item["metadata"] for item in shop.api.list("v1", "Node")):
                ended = node["uid"] in old and node.get("deletionTimestamp")
                assert not (ended and HOLD in node.get("annotations", {})), "Karpenter ended a held node"
            if old.keys().isdisjoint(held):
                break
        assert old.keys().isdisjoint(held), "an old node is still held"


def test_nodes_shrink_with_their_pods_and_with_their_buffer(
    shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """The cheaper room comes first, and nobody waits."""
    repository.commit({"nodepool.yaml": MANY_SIZES, "buffers/web.yaml": buffer_of(2)})
    shop.api.apply(deployment(60))
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        # Pods that still wait for their first node would be counted as pods that the smaller nodes kept waiting.
        eventually(lambda: len(shop.running()) == 60, within=90, what="60 pods run", every=0.5)
        daemon.wait_until_settled(shop.api)
        assert max(sizes(shop)) >= 32, sizes(shop)
        shop.scale(2)
        shrinks(shop, 8, pods=2)

        shop.scale(0)
        repository.commit({"buffers/web.yaml": buffer_of(14)})
        shop.wait_for_buffer("FitsExistingCapacity", replicas=14)
        daemon.wait_until_settled(shop.api)
        assert sum(sizes(shop)) >= 16, sizes(shop)
        repository.commit({"buffers/web.yaml": buffer_of(1)})
        shrinks(shop, 2, pods=0)


def shrinks(shop: Shop, most: int, *, pods: int) -> None:
    """The nodes have no more CPUs than that in the end, and on the way no pod waited and the buffer stayed full."""
    missing: list[str] = []

    def is_small() -> bool:
        missing.extend(pod["metadata"]["name"] for pod in shop.pods() if not pod["spec"].get("nodeName"))
        if not is_full(shop):
            missing.append(provisioning(shop)[1])
        return len(shop.running()) == pods and sum(sizes(shop)) <= most

    eventually(is_small, within=240, what=f"nodes of {most} CPUs in all", every=0.5)
    sys.stdout.write(f"{pods} pods on nodes of {sizes(shop)} CPUs; not full or waiting: {missing}\n")
    assert len(missing) <= 4, missing  # a pod that Karpenter moved was seen before it was bound


def sizes(shop: Shop) -> list[int]:
    """CPUs of each node that is there."""
    labels = (node["metadata"]["labels"] for node in shop.api.list("v1", "Node"))
    return [int(label[INSTANCE_TYPE].split("-")[1].removesuffix("x")) for label in labels]
