"""What headroom does when room that it holds is lost on real Karpenter: interrupted, out of stock, expired or not ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document, condition
from tests.controlplane.waiting import moments
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.shop import CLAIM, Shop, buffer_of
from tests.e2e.warm_nodes import HOLD, POOL, claim_of, held_nodes, is_full, web

pytestmark = pytest.mark.e2e

LIFE = 72
"""Seconds until a node expires: a quarter of them is left when headroom begins to replace it."""


@pytest.fixture
def daemon(
    shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> Callable[..., DaemonProcess]:
    """Starts the daemon on a web Deployment without pods and a pool; settings by name."""
    shop.api.apply(web(0))

    def start(**settings: str) -> DaemonProcess:
        return DaemonProcess(repository.folder, kubeconfig, tmp_path, **settings)

    return start


def test_interruption(
    daemon: Callable[..., DaemonProcess], shop: Shop, repository: CapacityRepository, empty_control_plane: ControlPlane
) -> None:
    """Karpenter answers an interruption by deleting the NodeClaim. The node drains, for as long as its pods may not be evicted."""
    repository.push({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(2)})
    with daemon() as running:
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        node = next(iter(held_nodes(shop).values()))
        keep_draining(shop, node)
        mark = empty_control_plane.audit_mark()

        shop.api.delete(*CLAIM, claim_of(shop, node)["metadata"]["name"])
        eventually(lambda: not is_full(shop), within=10, what="the buffer is short", every=0.1)
        eventually(lambda: is_full(shop), within=30, what="the buffer is full again", every=0.1)
        held = held_nodes(shop)
        assert len(held) == 2, "as soon as it says so it has the room of two other nodes"
        assert node["metadata"]["uid"] not in held
        assert shop.node(node["metadata"]["name"])["metadata"]["deletionTimestamp"], "it is still draining"

        running.wait_until_settled(shop.api)
        shop.api.delete("policy/v1", "PodDisruptionBudget", "guard", namespace="shop")
        eventually(
            lambda: node["metadata"]["name"] not in {item["metadata"]["name"] for item in shop.api.list("v1", "Node")},
            within=60,
            what="the interrupted node is gone",
            every=0.5,
        )
        assert is_full(shop)
        assert held.keys() == held_nodes(shop).keys()
        assert created_since(empty_control_plane, mark) == 1


def test_expiry(daemon: Callable[..., DaemonProcess], shop: Shop, repository: CapacityRepository) -> None:
    """Two nodes of one age are replaced one after the other, each before Karpenter would end it."""
    repository.push(
        {"nodepool.yaml": POOL.replace("expireAfter: 720h", f"expireAfter: {LIFE}s"), "buffers/web.yaml": buffer_of(2)}
    )
    with daemon(passes_interval="2s"):
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        old = held_nodes(shop)
        assert len(old) == 2
        for _ in moments(within=LIFE + 30, every=0.5):
            held = held_nodes(shop)
            assert len(held) >= 2, "the buffer is short"
            assert is_full(shop)
            on_their_way = [claim for claim in shop.placeholders() if condition(claim, "Initialized") != "True"]
            assert len(on_their_way) <= 1, "two are replaced at a time"
            ended = [
                node
                for node in nodes(shop)
                if node["metadata"]["uid"] in old and node["metadata"].get("deletionTimestamp")
            ]
            assert not any(HOLD in node["metadata"].get("annotations", {}) for node in ended), (
                "Karpenter ended a held node"
            )
            if old.keys().isdisjoint(held):
                break
        assert old.keys().isdisjoint(held), "an old node is still held"


def keep_draining(shop: Shop, node: Document) -> None:
    """A small pod on the node that must not be evicted."""
    labels = {"app": "guard"}
    shop.api.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard", "namespace": "shop"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }
    )
    pod = web(1)["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["requests"]["cpu"] = "100m"
    shop.api.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "guard", "namespace": "shop", "labels": labels},
            "spec": {**pod, "nodeName": node["metadata"]["name"]},
        }
    )
    eventually(lambda: len(shop.running()) == 1, within=30, what="the guard runs")


def created_since(plane: ControlPlane, mark: int) -> int:
    """How many NodeClaims headroom has made."""
    made = plane.writes_by(USER, since=mark)
    return sum(event.resource == "nodeclaims" and event.code == 201 for event in made)


def nodes(shop: Shop) -> list[Document]:
    return shop.api.list("v1", "Node")
