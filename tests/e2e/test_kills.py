"""Kill -9, refusals and time-outs at any write of a pass: the next pass goes on to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy
from tests.e2e.kill import Kill
from tests.e2e.shop import NODE_POOL, Shop

pytestmark = pytest.mark.e2e

BUFFERS = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, namespace: shop}
spec: {podTemplateRef: {name: small}, replicas: 4}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: shop}
spec: {podTemplateRef: {name: large}, replicas: 3}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: small, namespace: shop}
template:
  spec:
    tolerations: [{key: dedicated, operator: Exists}]
    containers: [{name: main, image: "small:1", resources: {requests: {cpu: "1", memory: 512Mi}}}]
---
apiVersion: v1
kind: PodTemplate
metadata: {name: large, namespace: shop}
template:
  spec:
    tolerations: [{key: dedicated, operator: Exists}]
    containers: [{name: main, image: "large:1", resources: {requests: {cpu: "3", memory: 1Gi}}}]
"""
MANIFESTS: dict[str, str | None] = {"nodepool.yaml": NODE_POOL, "buffers.yaml": BUFFERS}
PLACEHOLDERS = 2
"""Four chunks of 1 CPU and three of 3 CPUs, on nodes of 4 and 8 CPUs with no other pod: what an undisturbed run makes."""
LAST_KILL = 9
HOLD = "karpenter.sh/do-not-disrupt"


def check_end_state(shop: Shop) -> None:
    """What every history must end in: both buffers full, and as many placeholders as an undisturbed run makes."""
    shop.wait_for_buffer("FitsExistingCapacity", replicas=4)
    shop.wait_for_buffer("FitsExistingCapacity", replicas=3, name="spare")
    placeholders = shop.wait_for_placeholders()
    assert len(placeholders) == PLACEHOLDERS, [claim["metadata"]["annotations"] for claim in placeholders]
    assert all(claim["metadata"]["annotations"].get(HOLD) == "true" for claim in placeholders)


def test_an_undisturbed_run(shop: Shop, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path) -> None:
    repository.push(MANIFESTS)
    with FaultProxy(kubeconfig, tmp_path) as proxy, DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path):
        check_end_state(shop)
        # or the writes at which the tests below do harm would not be reached
        assert proxy.writes >= LAST_KILL


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 5, LAST_KILL])
def test_killed_at_a_write(
    number: int,
    moment: str,
    shop: Shop,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    repository.push(MANIFESTS)
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        daemon = DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path)
        kill = Kill(proxy, daemon, number, moment)
        with daemon:
            kill.wait()
            daemon.start()
            check_end_state(shop)


@pytest.mark.parametrize("status", [409, 429, 503])
def test_a_refused_write_is_tried_again(
    status: int,
    shop: Shop,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    """Writes two to five fail once each; nothing is lost and nothing is made twice."""
    repository.push(MANIFESTS)
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        proxy.fault = lambda write, when: status if when == "before" and 2 <= write <= 5 else None
        with DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path):
            check_end_state(shop)
