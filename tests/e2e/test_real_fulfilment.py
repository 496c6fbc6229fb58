"""Who keeps a buffer on real Karpenter: its own gate, headroom, and the way there and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.actors import GATE
from tests.controlplane.rest import Document
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.shop import BUFFER_OF_FOUR, NODE_POOL, Shop
from tests.git_repository import GitRepository
from tests.manifests import BY_DEPLOYMENT, buffer
from tests.running_daemon import ROOT

HOLD = "karpenter.sh/do-not-disrupt"
CHUNKS = 4
PATIENT_POOL = NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: 1h")


@pytest.fixture
def filled(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    """The daemon beside a buffer of four that it has filled, and a Deployment of ten that runs."""
    repository.commit({"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR})
    shop.deploy()
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        shop.wait_for_buffer("FitsExistingCapacity")
        daemon.wait_until_settled(shop.api)
        yield daemon


@pytest.fixture
def filled_apart(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    """The same, but the pods were there first, so that the buffer has a node of its own.

    Pods would fit on it: its room is lost if Karpenter ever empties another node into it.
    """
    repository.commit({"nodepool.yaml": NODE_POOL})
    shop.deploy()
    with DaemonProcess(repository.work, kubeconfig, tmp_path, passes_interval="5s") as daemon:
        eventually(lambda: len(shop.running()) == 10, within=120, what="the ten web pods run", every=0.5)
        repository.commit({"buffers/web.yaml": BUFFER_OF_FOUR})
        shop.wait_for_buffer("FitsExistingCapacity")
        daemon.wait_until_settled(shop.api)
        yield daemon


def conditions(shop: Shop) -> dict[str, dict[str, Any]]:
    return {item["type"]: item for item in shop.buffer().get("status", {}).get("conditions", ())}


def said(shop: Shop) -> tuple[str, str]:
    """Status and reason of the condition Fulfilment; empty where there is none."""
    found = conditions(shop).get("Fulfilment", {})
    return found.get("status", ""), found.get("reason", "")


def holds(shop: Shop) -> set[str]:
    return {claim["metadata"]["name"] for claim in shop.claims() if HOLD in claim["metadata"].get("annotations", {})}


def room(shop: Shop) -> int:
    """Whole web pods of 1 CPU that nodes which stay would take. Balloon pods make way, so that their room is free."""
    used: dict[str, float] = {}
    for pod in shop.api.list("v1", "Pod", labels="!headroom.dev/balloon"):
        name = pod["spec"].get("nodeName", "")
        used[name] = used.get(name, 0.0) + sum(map(_cpu, pod["spec"]["containers"]))
    return sum(
        int(float(_number(node["status"]["allocatable"]["cpu"])) - used.get(node["metadata"]["name"], 0.0))
        for node in shop.api.list("v1", "Node")
        if not node["metadata"].get("deletionTimestamp") and not _is_disrupted(node)
    )


def _cpu(container: Document) -> float:
    return _number(container.get("resources", {}).get("requests", {}).get("cpu", "0"))


def _number(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def _is_disrupted(node: Document) -> bool:
    return any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", ()))


@contextmanager
def watched_room(shop: Shop) -> Iterator[list[int]]:
    """The room at every half second from here to the end of the block."""
    seen: list[int] = []
    done = Event()

    def watch() -> None:
        while not done.wait(0.5):
            seen.append(room(shop))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def _look(seen: list[int], times: int) -> None:
    """Waits for so many more looks at the room, two a second."""
    wanted = len(seen) + times
    eventually(lambda: len(seen) >= wanted, within=5 * times, what=f"{times} more looks", every=0.5)


def balloons(shop: Shop) -> list[Document]:
    pods = shop.api.list("v1", "Pod", namespace="shop", labels="headroom.dev/balloon")
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def web_pods(shop: Shop) -> list[Document]:
    return [pod for pod in shop.running() if pod["metadata"]["labels"].get("app") == "web"]


def allow_balloons(shop: Shop) -> None:
    for file in sorted((ROOT / "config" / "balloon").glob("cluster_role*.yaml")):
        shop.api.apply(yaml.safe_load(file.read_text()))


@pytest.mark.e2e
def test_there_and_back_without_losing_the_capacity(
    filled_apart: DaemonProcess, shop: Shop, repository: GitRepository, empty_control_plane: ControlPlane
) -> None:
    with watched_room(shop) as seen:
        empty_control_plane.restart_karpenter(GATE)
        eventually(
            lambda: said(shop) == ("True", "ServedByAutoscaler"), within=120, what="headroom stands down", every=0.5
        )
        eventually(lambda: holds(shop) == set(), within=30, what="every hold is released", every=0.5)
        there = conditions(shop)
        assert there["Provisioning"]["status"] == "True"
        assert "virtual pods" in there["Provisioning"]["message"], "the word is Karpenter's"
        _look(seen, 20)
        assert said(shop) == ("True", "ServedByAutoscaler")
        assert conditions(shop)["Provisioning"]["status"] == "True"

        repository.commit({"buffers/web.yaml": annotated("placeholder")})
        eventually(lambda: said(shop) == ("False", "AlsoServed"), within=60, what="headroom takes it back", every=0.5)
        eventually(lambda: holds(shop), within=30, what="its nodes are held again", every=0.5)
        filled_apart.wait_until_settled(shop.api)
        passes = filled_apart.status()["passes"]
        mark = empty_control_plane.audit_mark()
        eventually(lambda: filled_apart.status()["passes"] >= passes + 2, within=90, what="two more passes", every=0.5)
        assert [event.uri for event in empty_control_plane.writes_by(USER, since=mark)] == [], "nobody fights"

        assert min(seen) >= CHUNKS, f"room while Karpenter's gate served the buffer, every half second: {list(seen)}"

        # Nobody tells headroom that the gate is off. Until Karpenter's word is a minute old and wrong, or ten minutes old, the nodes
        # carry no taint, and Karpenter may still move other pods in once, as it does here.
        empty_control_plane.restart_karpenter()
        eventually(lambda: said(shop) == ("", ""), within=180, what="headroom alone keeps the buffer", every=0.5)
        shop.wait_for_buffer("FitsExistingCapacity", within=120)
        eventually(lambda: room(shop) >= CHUNKS, within=30, what="the room is there", every=0.5)
        assert holds(shop)


@pytest.mark.e2e
@pytest.mark.usefixtures("filled")
def test_balloon_pods_and_back_without_losing_the_capacity(shop: Shop, repository: GitRepository) -> None:
    allow_balloons(shop)
    with watched_room(shop) as seen:
        repository.commit({"buffers/web.yaml": annotated("balloon")})
        eventually(lambda: said(shop) == ("True", "BalloonPods"), within=90, what="balloon pods keep it", every=0.5)
        assert len(balloons(shop)) == CHUNKS
        assert {pod["spec"]["priority"] for pod in balloons(shop)} == {-10}
        eventually(lambda: holds(shop) == set(), within=30, what="every hold is released", every=0.5)
        assert conditions(shop)["Provisioning"]["status"] == "True"

        repository.commit({"buffers/web.yaml": annotated("placeholder")})
        eventually(lambda: balloons(shop) == [], within=60, what="the balloon is gone", every=0.5)
        assert holds(shop), "what it stood on was held first"
        shop.wait_for_buffer("FitsExistingCapacity")
    assert min(seen) >= CHUNKS, seen


@pytest.mark.e2e
@pytest.mark.usefixtures("filled")
def test_web_pods_push_balloon_pods_out(shop: Shop, repository: GitRepository) -> None:
    allow_balloons(shop)
    # What Karpenter would move meanwhile must not be taken for what pushes the balloon pods out.
    repository.commit({"nodepool.yaml": PATIENT_POOL, "buffers/web.yaml": annotated("balloon")})
    eventually(lambda: said(shop) == ("True", "BalloonPods"), within=90, what="balloon pods keep it", every=0.5)
    shop.scale(10 + CHUNKS)

    eventually(lambda: len(web_pods(shop)) == 14, within=30, what="web pods take the balloons' room", every=0.2)
    # forty percent of fourteen, rounded up
    eventually(lambda: len(balloons(shop)) == 6, within=120, what="the balloon pods have new nodes", every=0.5)

    repository.commit({"buffers/web.yaml": None})
    eventually(lambda: balloons(shop) == [], within=60, what="the balloon is pruned with its buffer", every=0.5)


def annotated(fulfilment: str) -> str:
    """The buffer of four, with who is to keep it."""
    return buffer("web", "percentage: 40", of=BY_DEPLOYMENT, fulfilment=fulfilment)
