"""What headroom does when room that it holds is lost on real Karpenter: interrupted, out of stock, expired or not ready."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_class
from tests.controlplane.rest import Document, condition
from tests.controlplane.waiting import moments
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import NAMESPACE, USER, DaemonProcess
from tests.e2e.shop import CLAIM, Shop, buffer_of
from tests.e2e.shop import POOL as NODE_POOL_KIND
from tests.e2e.warm_nodes import HOLD, POOL, claim_of, held_nodes, is_full, provisioning, web

pytestmark = pytest.mark.e2e

GRACE = 10
"""Seconds that chunks wait for a node that is not ready."""
LIFE = 72
"""Seconds until a node expires: a quarter of them is left when headroom begins to replace it."""
RARE = (
    POOL.replace("name: general", "name: rare")
    .replace("limits:", "weight: 10\n  limits:")
    .replace("name: default", "name: rare")
    .replace("karpenter.kwok.sh/instance-cpu", "node.kubernetes.io/instance-type")
    .replace('["4"]', "[c-4x-amd64-linux]")
)
"""Preferred, of a single instance type, and of a node class of its own."""


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
    daemon: Callable[..., DaemonProcess],
    shop: Shop,
    repository: CapacityRepository,
    empty_control_plane: ControlPlane,
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


def test_stock_out(
    daemon: Callable[..., DaemonProcess],
    shop: Shop,
    repository: CapacityRepository,
    empty_control_plane: ControlPlane,
) -> None:
    """The KWOK provider answers with an insufficient capacity error when the node class has gone before the launch."""
    plane = empty_control_plane
    shop.api.apply(node_class("rare"))
    common = POOL.replace('values: ["4"]', 'values: ["8"]')
    repository.push({"nodepool.yaml": common, "rare.yaml": RARE})
    with daemon(placement_instance_types="1"):
        eventually(lambda: ready_pools(shop) == {"general", "rare"}, within=60, what="both pools are ready", every=0.5)
        plane.stop_karpenter()
        shop.api.delete("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "rare")
        mark = plane.audit_mark()
        repository.push({"buffers/web.yaml": buffer_of(3)})
        eventually(lambda: len(shop.placeholders()) == 3, within=60, what="three nodes are asked for", every=0.5)
        tried = {claim["metadata"]["name"] for claim in shop.placeholders()}
        plane.restart_karpenter()
        eventually(lambda: not tried & names(shop.claims()), within=60, what="none of the three is left", every=0.1)
        shop.api.apply(node_class("rare"))

        shop.wait_for_buffer("FitsExistingCapacity", replicas=3)
        assert {claim["metadata"]["labels"]["karpenter.sh/nodepool"] for claim in shop.placeholders()} == {"general"}
        (back_off,) = back_offs(shop)
        assert back_off["failures"] == 1, "three launches of one offering found out the same thing once"
        told = [
            event["message"]
            for event in shop.api.list("v1", "Event", namespace="shop")
            if event["reason"] == "NoCapacity"
        ]
        assert all(any(name in message for message in told) for name in tried), told
        assert any("instead it asks for c-8x-amd64-linux" in message for message in told), told
        assert created_since(plane, mark) == 3 + len(shop.placeholders())


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


def test_not_ready(
    daemon: Callable[..., DaemonProcess],
    shop: Shop,
    repository: CapacityRepository,
    empty_control_plane: ControlPlane,
) -> None:
    """Back within the grace, nothing but the status is written. Beyond it, other room is made."""
    repository.push({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(2)})
    with daemon(placement_not_ready_grace=f"{GRACE}s") as running:
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        node = next(iter(held_nodes(shop).values()))
        leave_to_the_test(empty_control_plane, node)
        running.wait_until_settled(shop.api)
        mark = empty_control_plane.audit_mark()

        set_ready(shop, node, ready=False)
        eventually(lambda: not is_full(shop), within=GRACE, what="the buffer is short", every=0.2)
        assert provisioning(shop) == ("False", "of 2 chunks, 1 on nodes that are not ready")
        set_ready(shop, node, ready=True)
        eventually(lambda: is_full(shop), within=30, what="the buffer is full", every=0.2)
        for _ in moments(within=GRACE, every=0.5):
            assert is_full(shop)
        written = {event.resource for event in empty_control_plane.writes_by(USER, since=mark)}
        assert written <= {"capacitybuffers/status", "events"}, written

        since = set_ready(shop, node, ready=False)
        eventually(
            lambda: created_since(empty_control_plane, mark), within=GRACE + 30, what="other room is made", every=1
        )
        (new,) = [claim for claim in shop.placeholders() if time_of(claim["metadata"]["creationTimestamp"]) >= since]
        assert time_of(new["metadata"]["creationTimestamp"]) >= since + timedelta(seconds=GRACE - 1), "to the second"
        shop.wait_for_buffer("FitsExistingCapacity", replicas=2)
        assert len(held_nodes(shop)) == 2
        assert created_since(empty_control_plane, mark) == 1


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


def leave_to_the_test(plane: ControlPlane, node: Document) -> None:
    """KWOK lets go of the node, so that its status stays what the test writes."""
    plane.stop_kwok()
    plane.api.patch("v1", "Node", node["metadata"]["name"], {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}})
    plane.start_kwok()


def set_ready(shop: Shop, node: Document, *, ready: bool) -> datetime:
    """Returns since when it says so, by the API server's second."""
    now = datetime.now(UTC).replace(microsecond=0)
    found = shop.node(node["metadata"]["name"])
    word = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "",
        "lastTransitionTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "lastHeartbeatTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    others = [item for item in found["status"]["conditions"] if item["type"] != "Ready"]
    shop.api.patch(
        "v1", "Node", node["metadata"]["name"], {"status": {"conditions": [*others, word]}}, subresource="status"
    )
    return now


def created_since(plane: ControlPlane, mark: int) -> int:
    """How many NodeClaims headroom has made."""
    made = plane.writes_by(USER, since=mark)
    return sum(event.resource == "nodeclaims" and event.code == 201 for event in made)


def back_offs(shop: Shop) -> list[Document]:
    """What the inventory remembers of offerings that gave no node."""
    inventory = shop.api.get("v1", "ConfigMap", "headroom", namespace=NAMESPACE) or {}
    found: list[Document] = json.loads(inventory["data"]["memory.json"])["backOffs"]
    return found


def ready_pools(shop: Shop) -> set[str]:
    return {pool["metadata"]["name"] for pool in shop.api.list(*NODE_POOL_KIND) if condition(pool, "Ready") == "True"}


def names(objects: list[Document]) -> set[str]:
    return {item["metadata"]["name"] for item in objects}


def nodes(shop: Shop) -> list[Document]:
    return shop.api.list("v1", "Node")


def time_of(written: str) -> datetime:
    return datetime.fromisoformat(written)
