"""How soon the next NodeClaim follows once a pod has taken a buffer's room: headroom beside Karpenter's own feature gate.

python -m tests.perf.refill

Both on one control plane, one after the other, with the same NodePool, Deployment and buffer. A pod fills a node, as a chunk does, so that
every pod that comes takes a whole one. Dated by this process, which looks fifty times a second, since the API server dates its objects in
whole seconds. headroom runs as its daemon with its default settings. Takes some minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.actors import GATE
from tests.controlplane.rest import condition
from tests.controlplane.waiting import moments
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.e2e.shop import NODE_POOL, Shop, buffer_of, deployment
from tests.git_repository import GitRepository

TIMES = 10
CHUNKS = 4
REST = 4
"""Seconds of quiet before each pod, so that no pass or loop is still under way because of the one before."""
POOL = NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: Never").replace(
    'values: ["4", "8"]', 'values: ["4"]'
)
DEFAULTS = {"passes_quiet": "2s", "passes_interval": "5m", "git_interval": "1m"}
"""What the daemon has by itself; other tests have it look more often."""


def with_headroom(plane: ControlPlane, folder: Path) -> list[float]:
    shop = Shop(plane)
    repository = GitRepository(folder / "repository")
    repository.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(CHUNKS)})
    _deploy(shop)
    with DaemonProcess(repository.work, install_rbac(plane), folder, **DEFAULTS):
        return refills(shop)


def with_the_gate(plane: ControlPlane) -> list[float]:
    shop = Shop(plane)
    plane.restart_karpenter(GATE)
    _deploy(shop)
    for text in (POOL, buffer_of(CHUNKS)):
        shop.api.apply(yaml.safe_load(text))
    return refills(shop)


def _deploy(shop: Shop) -> None:
    shop.api.apply(deployment(0, cpu="3"))


def refills(shop: Shop) -> list[float]:
    """Seconds from the binding of each pod to the next NodeClaim."""
    found = []
    for number in range(TIMES):
        _wait_until_full(shop, number)
        claims = len(shop.claims())
        shop.scale(number + 1)
        bound = _when(lambda: sum("nodeName" in pod["spec"] for pod in shop.pods()), number, "a pod is bound")
        made = _when(lambda: len(shop.claims()), claims, "a NodeClaim is made")
        found.append(made - bound)
        sys.stdout.write(f"  {found[-1]:.2f} s\n")
        sys.stdout.flush()
    return found


def _when(count: Callable[[], int], before: int, what: str) -> float:
    """When there are more than before."""
    return eventually(lambda: count() > before and time.monotonic(), within=180, what=what, every=0.02)


def _wait_until_full(shop: Shop, pods: int) -> None:
    def is_full() -> bool:
        ready = [claim for claim in shop.claims() if condition(claim, "Initialized") == "True"]
        return len(shop.running()) == pods and len(ready) == len(shop.claims()) == pods + CHUNKS

    eventually(is_full, within=240, what=f"{pods} pods run and {CHUNKS} nodes stand ready", every=0.5)
    for _ in moments(within=REST, every=1):
        assert is_full()


def words(name: str, seconds: list[float]) -> str:
    return f"{name}: {median(seconds):.2f} s at the median, {max(seconds):.2f} s at most, of {len(seconds)}\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        sys.stdout.write("headroom, from the binding of a pod to the next NodeClaim\n")
        own = with_headroom(plane, Path(folder))
        plane.sweep()
        sys.stdout.write("Karpenter with its feature gate CapacityBuffer\n")
        gate = with_the_gate(plane)
    sys.stdout.write(words("headroom", own) + words("Karpenter's gate", gate))
    sys.stdout.write(f"the gate takes {median(gate) / median(own):.1f} times as long at the median\n")


if __name__ == "__main__":
    main()
