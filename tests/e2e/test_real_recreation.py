"""What running pods do to a buffer on real Karpenter: with KeepMinimum they fill it, and a dedicated one only its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import ROOT, USER, DaemonProcess
from tests.e2e.shop import Shop
from tests.e2e.warm_nodes import POOL, held_nodes, web

pytestmark = pytest.mark.e2e

BUFFER = ("autoscaling.x-k8s.io/v1alpha1", "Buffer")
KEEP_MINIMUM = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  capacity: {replicas: {exactly: 2}}
  recreationStrategy: KeepMinimum
"""
DEDICATED = KEEP_MINIMUM + "  podSelector: {matchLabels: {app: web}}\n"


@pytest.fixture
def daemon(shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    """Beside two Deployments without pods; a node holds one pod of either."""
    definition = yaml.safe_load((ROOT / "config" / "crd" / "buffers.autoscaling.x-k8s.io.yaml").read_text())
    shop.api.apply(definition)
    eventually(lambda: shop.api.list(*BUFFER) == [], within=30, what="Buffers are served")
    shop.api.apply(web(0))
    shop.api.apply(web(0, name="batch"))
    repository.push({"nodepool.yaml": POOL})
    with DaemonProcess(repository.folder, kubeconfig, tmp_path, passes_interval="3s") as daemon:
        yield daemon


def test_keep_minimum(
    daemon: DaemonProcess, shop: Shop, repository: CapacityRepository, empty_control_plane: ControlPlane
) -> None:
    """Pods that take the room of a buffer fill it: no other room is made, and when they go the nodes are kept."""
    repository.push({"buffers/web.yaml": KEEP_MINIMUM})
    wait_until_full(shop, size=2)
    kept = set(held_nodes(shop))
    assert len(kept) == 2
    mark = empty_control_plane.audit_mark()

    shop.scale(2)
    eventually(lambda: len(shop.running()) == 2, within=30, what="both pods run", every=0.2)
    two_more_passes(daemon)
    assert {node["metadata"]["uid"] for node in shop.api.list("v1", "Node")} == kept

    shop.scale(0)
    eventually(lambda: shop.pods() == [], within=30, what="no pod is left", every=0.2)
    two_more_passes(daemon)
    assert set(held_nodes(shop)) == kept
    wait_until_full(shop, size=2)
    assert made_since(empty_control_plane, mark) == 0


def test_dedicated(
    daemon: DaemonProcess, shop: Shop, repository: CapacityRepository, empty_control_plane: ControlPlane
) -> None:
    """A pod that the buffer is for takes its part of the size with it; what another pod takes is made good."""
    repository.push({"buffers/web.yaml": DEDICATED})
    wait_until_full(shop, size=2)
    mark = empty_control_plane.audit_mark()

    shop.scale(1)
    wait_until_full(shop, size=1)
    two_more_passes(daemon)
    assert made_since(empty_control_plane, mark) == 0

    shop.api.apply(web(1, name="batch"))
    eventually(lambda: len(shop.running()) == 2, within=30, what="the other pod runs", every=0.2)
    eventually(lambda: made_since(empty_control_plane, mark) == 1, within=30, what="its room is made good", every=0.5)
    wait_until_full(shop, size=1)


def wait_until_full(shop: Shop, *, size: int) -> None:
    def said() -> bool:
        status: Document = (shop.api.get(*BUFFER, "web", namespace="shop") or {})["status"]
        conditions = {item["type"]: item["status"] for item in status["conditions"]}
        assert (status["replicas"], conditions["Provisioning"]) == (size, "True"), status
        return True

    eventually(said, within=60, what=f"the buffer is full with {size}", every=0.2)


def two_more_passes(daemon: DaemonProcess) -> None:
    passes = daemon.status()["passes"]
    eventually(lambda: daemon.status()["passes"] >= passes + 2, within=60, what="two more passes", every=0.5)


def made_since(plane: ControlPlane, mark: int) -> int:
    """How many NodeClaims headroom has made."""
    made = plane.writes_by(USER, since=mark)
    return sum(event.resource == "nodeclaims" and event.code == 201 for event in made)
