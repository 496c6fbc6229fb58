"""Kill -9, refusals and time-outs at any write of a pass: the next pass goes on to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy
from tests.e2e.shop import BUFFER_OF_FOUR, NODE_POOL, Shop

pytestmark = pytest.mark.e2e

SECOND_BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: shop}
spec:
  podTemplateRef: {name: spare}
  replicas: 3
---
apiVersion: v1
kind: PodTemplate
metadata: {name: spare, namespace: shop}
template:
  spec:
    tolerations: [{key: dedicated, operator: Exists}]
    containers: [{name: main, image: "spare:1", resources: {requests: {cpu: "3", memory: 1Gi}}}]
"""
# 3 chunks of 3 CPUs on nodes of at most 8 CPUs, beside a buffer of 4 chunks of 1 CPU: two nodes hold them all
MOST_PLACEHOLDERS = 3


def check_end_state(shop: Shop) -> None:
    """What every history must end in: both buffers full, and no placeholder that holds nothing."""
    shop.wait_for_buffer("FitsExistingCapacity")
    placeholders = shop.wait_for_placeholders()
    assert len(placeholders) <= MOST_PLACEHOLDERS
    held = [claim for claim in placeholders if claim["metadata"]["annotations"].get("karpenter.sh/do-not-disrupt")]
    assert sum(int(claim["spec"]["resources"]["requests"]["pods"]) >= 1 for claim in held) == len(held)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 4, 6, 7])
def test_killed_at_a_write(
    number: int,
    moment: str,
    shop: Shop,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    repository.push(
        {"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR, "buffers/spare.yaml": SECOND_BUFFER}
    )
    shop.deploy()
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        daemon = DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path)
        killed: list[int] = []

        def kill(write: int, when: str) -> int | None:
            if (write, when) != (number, moment) or killed:
                return None
            killed.append(daemon.pid)
            daemon.kill()
            return 503

        proxy.fault = kill
        with daemon:
            eventually(lambda: killed, within=90, what=f"write {number} is reached")
            daemon.start()
            check_end_state(shop)


@pytest.mark.parametrize("status", [403, 409, 429, 500, 503])
def test_a_refused_write_is_tried_again(
    status: int,
    shop: Shop,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    """Writes two to five fail once each; nothing is lost and nothing is made twice."""
    repository.push(
        {"nodepool.yaml": NODE_POOL, "buffers/web.yaml": BUFFER_OF_FOUR, "buffers/spare.yaml": SECOND_BUFFER}
    )
    shop.deploy()
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        proxy.fault = lambda write, when: status if when == "before" and 2 <= write <= 5 else None
        with DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path):
            check_end_state(shop)
