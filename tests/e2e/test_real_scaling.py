"""A buffered Deployment that is scaled up and down on real Karpenter: no pod waits, and no node is made in vain."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.waiting import moments
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.scaled_deployment import Scale, ScaledDeployment, scales
from tests.e2e.shop import NODE_POOL, Shop, buffer_of, deployment

START = 4
CHUNKS = 4
MOST_PASSES = 3
"""That write something, after one event: what is short is asked for, it is on its way, it is there."""
POOL = (
    NODE_POOL.replace("consolidateAfter: 0s", "consolidateAfter: 10s")
    .replace('nodes: "100%"', 'nodes: "50%"')
    .replace('values: ["4", "8"]', 'values: ["4"]')
)
DEFAULTS = {"passes_quiet": "2s", "passes_interval": "5m"}
"""What the daemon has by itself; other tests have it look more often."""


@pytest.fixture
def daemon(
    shop: Shop,  # noqa: ARG001 - asked for what it does
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[DaemonProcess]:
    repository.push({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(CHUNKS)})
    with DaemonProcess(repository.folder, kubeconfig, tmp_path, **DEFAULTS) as running:
        yield running


class Scenario:
    """per_node: pods, or chunks, that a node has room for."""

    def __init__(self, shop: Shop, daemon: DaemonProcess, plane: ControlPlane, *, per_node: int) -> None:
        self._shop, self._daemon, self._plane = shop, daemon, plane
        self._per_node = per_node

    def play(self, steps: Iterable[Scale], *, rest: float) -> ScaledDeployment:
        """Scales the Deployment so, and returns what was seen when all is at rest again."""
        self._shop.api.apply(deployment(START, cpu={1: "3", 3: "1"}[self._per_node]))
        self._shop.wait_for_buffer("FitsExistingCapacity", replicas=CHUNKS)
        self._come_to_rest(START, rest)
        with ScaledDeployment(self._shop, self._daemon, per_node=self._per_node, chunks=CHUNKS) as scaled:
            for step in steps:
                scaled.scale(step.after)
                for _ in moments(within=step.wait, every=0.5):
                    assert self._daemon.running
            self._come_to_rest(scaled.steps[-1].after, rest)
            return scaled

    def _come_to_rest(self, replicas: int, rest: float) -> None:
        """There are no more nodes than need be, and then for so many seconds headroom writes nothing."""
        least = -(-(replicas + CHUNKS) // self._per_node)
        eventually(
            lambda: len(self._shop.running()) == replicas and len(self._shop.claims()) <= least,
            within=240,
            what=f"{replicas} pods run on no more than {least} nodes",
            every=0.5,
        )
        self._daemon.wait_until_settled(self._shop.api)
        mark = self._plane.audit_mark()
        for _ in moments(within=rest, every=0.5):
            assert self._daemon.running
        assert self._plane.writes_by(USER, since=mark) == []


def judge(scaled: ScaledDeployment, name: str) -> None:
    idle = sorted(scaled.idle_seconds()) or [0.0]
    passes = scaled.passes_with_writes()
    sys.stdout.write(
        f"{name}: {len(scaled.steps)} steps, the buffer had room for {sum(step.has_room for step in scaled.steps)}; "
        f"pods that waited all the same: {scaled.waited() or 'none'}; nodes taken while held: "
        f"{scaled.taken_while_held() or 'none'}; {scaled.created()} NodeClaims made, at least {scaled.least_created()}; "
        f"nodes that nobody needed went after {idle[len(idle) // 2]:.0f} s at the median, {idle[-1]:.0f} s at most; "
        f"{len(passes)} passes with writes after {len(scaled.steps)} steps and {len(scaled.removals())} nodes that went\n"
    )
    assert scaled.waited() == []
    assert scaled.taken_while_held() == []
    assert scaled.created() <= 1.1 * scaled.least_created()
    assert [pair for pair in scaled.passes_after_each_step() if pair[0] > MOST_PASSES * pair[1]] == []


@pytest.mark.e2e
def test_up_down_and_up_again(shop: Shop, daemon: DaemonProcess, empty_control_plane: ControlPlane) -> None:
    steps = [Scale(7, 12), Scale(2, 12), Scale(5, 1)]
    judge(Scenario(shop, daemon, empty_control_plane, per_node=1).play(steps, rest=12), "three steps")


@pytest.mark.soak
@pytest.mark.parametrize(("seed", "per_node"), [(1, 1), (2, 1), (3, 3)])
def test_ten_minutes_of_random_steps(
    seed: int, per_node: int, shop: Shop, daemon: DaemonProcess, empty_control_plane: ControlPlane
) -> None:
    scenario = Scenario(shop, daemon, empty_control_plane, per_node=per_node)
    judge(scenario.play(scales(seed, start=START, seconds=600), rest=30), f"seed {seed}")
