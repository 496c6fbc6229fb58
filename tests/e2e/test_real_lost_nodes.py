"""What headroom does when room that it holds is lost on real Karpenter: interrupted, out of stock, expired or not ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane.rest import Document, condition
from tests.controlplane.waiting import moments
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import Shop, buffer_of
from tests.e2e.warm_nodes import HOLD, POOL, held_nodes, is_full, web
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

LIFE = 72
"""Seconds until a node expires: a quarter of them is left when headroom begins to replace it."""


@pytest.fixture
def daemon(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> Callable[..., DaemonProcess]:
    """Starts the daemon on a web Deployment without pods and a pool; settings by name."""
    shop.api.apply(web(0))

    def start(**settings: str) -> DaemonProcess:
        return DaemonProcess(repository.work, kubeconfig, tmp_path, **settings)

    return start


def test_expiry(daemon: Callable[..., DaemonProcess], shop: Shop, repository: GitRepository) -> None:
    """Two nodes of one age are replaced one after the other, each before Karpenter would end it."""
    repository.commit(
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


def nodes(shop: Shop) -> list[Document]:
    return shop.api.list("v1", "Node")
