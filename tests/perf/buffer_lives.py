"""What a buffer costs over its life on real Karpenter: headroom beside Karpenter's own feature gate, at the same time.

python -m tests.perf.buffer_lives [--random N]

Each has a control plane of its own, and the same NodePool, Deployment and buffer live through the same steps. Nodes are priced by their
instance type and counted every half second. A pod counts as waiting while it has no node. Takes some minutes for each life.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane import ControlPlane
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.e2e.shop import NODE_POOL, Shop, buffer_of, deployment
from tests.perf.refill import DEFAULTS, GATE

PRICES = {"c": 0.0271, "m": 0.0330, "r": 0.0430, "s": 0.0271}
"""USD a core and hour by family, as Karpenter's KWOK provider has them."""
POOL = (
    NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: 15s")
    .replace('values: ["4", "8"]', 'values: ["2", "4", "8", "16", "32", "64"]')
    .replace('limits: {cpu: "200"}', 'limits: {cpu: "400"}')
)
EVERY = 0.5


@dataclass(frozen=True)
class Step:
    """So many pods and chunks, for so many seconds."""

    pods: int
    chunks: int
    seconds: int


@dataclass
class Bill:
    """dollars: paid over the life. at_the_end: USD an hour. waited: pod-seconds without a node."""

    dollars: float = 0.0
    at_the_end: float = 0.0
    waited: float = 0.0


LIVES = {
    "60 pods become 2, a buffer of 2": (Step(60, 2, 60), Step(2, 2, 150)),
    "no pods, a buffer of 14 becomes 1": (Step(0, 14, 60), Step(0, 1, 150)),
}


def random_life(seed: int) -> tuple[Step, ...]:
    chance = random.Random(seed)
    return tuple(Step(chance.randint(1, 60), chance.randint(1, 14), 70) for _ in range(3))


def price(shop: Shop) -> float:
    types = (
        node["metadata"]["labels"].get("node.kubernetes.io/instance-type", "") for node in shop.api.list("v1", "Node")
    )
    parts = (name.split("-") for name in types if name)
    return sum(PRICES[family] * int(cores.removesuffix("x")) for family, cores, *_ in parts)


def lived(shop: Shop, repository: CapacityRepository | None, steps: tuple[Step, ...]) -> Bill:
    """repository: where the buffer's size is pushed; None where it is applied."""
    bill = Bill()
    for step in steps:
        if repository is None:
            shop.api.apply(yaml.safe_load(buffer_of(step.chunks)))
        else:
            repository.push({"buffers/web.yaml": buffer_of(step.chunks)})
        shop.scale(step.pods)
        last = begin = time.monotonic()
        while last < begin + step.seconds:
            time.sleep(EVERY)
            now = time.monotonic()
            bill.at_the_end = price(shop)
            bill.dollars += bill.at_the_end * (now - last) / 3600
            bill.waited += sum("nodeName" not in pod["spec"] for pod in shop.pods()) * (now - last)
            last = now
    return bill


@contextmanager
def with_headroom(plane: ControlPlane, folder: Path) -> Iterator[CapacityRepository | None]:
    repository = CapacityRepository(folder / "repository")
    repository.push({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(1)})
    with DaemonProcess(repository.folder, install_rbac(plane), folder, **{**DEFAULTS, "git_interval": "2s"}) as daemon:
        daemon.wait_until_ready()
        yield repository


@contextmanager
def with_the_gate(plane: ControlPlane, _folder: Path) -> Iterator[CapacityRepository | None]:
    plane.restart_karpenter(GATE)
    plane.api.apply(yaml.safe_load(POOL))
    yield None


def bills(name: str, lives: dict[str, tuple[Step, ...]]) -> dict[str, Bill]:
    keeper = with_headroom if name == "headroom" else with_the_gate
    found = {}
    with tempfile.TemporaryDirectory() as top, ControlPlane() as plane:
        for number, (life, steps) in enumerate(lives.items()):
            folder = Path(top) / str(number)
            folder.mkdir()
            shop = Shop(plane)
            shop.api.apply(deployment(0))
            with keeper(plane, folder) as repository:
                found[life] = lived(shop, repository, steps)
            plane.sweep()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What a buffer costs over its life, beside Karpenter's own feature gate."
    )
    parser.add_argument("--random", type=int, default=3, metavar="N", help="how many random lives besides the two")
    asked = parser.parse_args().random
    lives = LIVES | {f"random life {seed}": random_life(seed) for seed in range(asked)}
    with ThreadPoolExecutor(2) as pool:
        own, gate = pool.map(lambda name: bills(name, lives), ("headroom", "the gate"))
    for life in lives:
        words = (
            f"{name} ${bill.dollars:.4f}, ${bill.at_the_end:.3f}/h at the end, {bill.waited:.0f} pod-seconds without a node"
            for name, bill in (("headroom", own[life]), ("the gate", gate[life]))
        )
        sys.stdout.write(f"{life}: {'; '.join(words)}\n")
    paid = [sum(bill.dollars for bill in side.values()) for side in (own, gate)]
    sys.stdout.write(
        f"in all headroom ${paid[0]:.4f}, the gate ${paid[1]:.4f}: {paid[0] / paid[1]:.2f} times as much\n"
    )


if __name__ == "__main__":
    main()
