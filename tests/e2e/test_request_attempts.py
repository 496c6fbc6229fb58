"""Attempts of atomic requests on real Karpenter: all at once, within limits or not at all, and the same end after a kill.

tests/properties/test_requests.py kills at every write of the embedded cluster, to the end of the booking and of a rollback.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane import eventually
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy
from tests.e2e.research import Research, node_pool, pod_template
from tests.fakes.requests import CHECK, FOUND, MADE, NOT_FOUND
from tests.git_repository import GitRepository

NODES = 2
KILLS = 12
"""Events not counted: the request's record, its NodeClaims, its status, the marks of its nodes, the booking and the status that says so; then the end of that."""
IN_CI = (2, 6, 9)
POOL, TEMPLATE = node_pool(cpu="4", limits={"nodes": "120"}), pod_template("3")
"""Each worker has a node to itself."""
MANIFESTS: dict[str, str | None] = {"batch.yaml": yaml.safe_dump_all([POOL, TEMPLATE])}


@pytest.mark.e2e
def test_a_request_is_made_in_one_step_and_checks_say_what_is_left(
    research: Research, repository: GitRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """110 nodes from none, more than a pass makes of others; then the booked room is not there for a check."""
    repository.commit(MANIFESTS)
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        research.ask("train", 110)
        research.wait_for("train", "Provisioned", MADE, within=180)
        assert research.attempts() == ["1"] * 110, research.told("train")
        research.ask("check", class_name=CHECK)
        research.wait_for("check", "Provisioned", NOT_FOUND)
        research.ask("too-many", 20, ValidUntilSeconds="20")
        research.wait_for("too-many", "Provisioned", NOT_FOUND)
        research.wait_for("too-many", "Failed", ("True", "Expired"), within=60)
        assert len(research.claims()) == 110
        research.cancel("train")
        research.wait_for("check", "Provisioned", FOUND)
        eventually(lambda: len(research.claims()) == 1, within=120, what="the rest is given back", every=1)


class Kill:
    """Ends the daemon once, as a lost machine would, when the write of that number from now on was done."""

    def __init__(self, proxy: FaultProxy, daemon: DaemonProcess, number: int) -> None:
        self._daemon = daemon
        self._number = number
        self._at = proxy.writes + number
        self._begun = self._done = False
        proxy.fault = self._fault

    def wait(self) -> None:
        eventually(lambda: self._done, within=90, what=f"write {self._number} is reached")

    def _fault(self, write: int) -> int | None:
        if write != self._at or self._begun:
            return None
        self._begun = True
        self._daemon.kill()
        self._done = True
        return 503


@pytest.fixture
def proxy(kubeconfig: Path, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(kubeconfig, tmp_path) as running:
        yield running


@pytest.fixture
def daemon(research: Research, repository: GitRepository, proxy: FaultProxy, tmp_path: Path) -> Iterator[DaemonProcess]:
    """With a pool and a PodTemplate in the cluster and nothing in the repository, it has nothing to write until there is a request.

    Bookings are short, so that their end is within reach.
    """
    research.api.apply(POOL)
    research.api.apply(TEMPLATE)
    with DaemonProcess(repository.work, proxy.kubeconfig, tmp_path, requests_booked_for="15s") as running:
        running.wait_until_ready()
        eventually(lambda: running.status()["passes"] >= 1, within=60, what="a pass was made", every=0.5)
        research.wait_until_hashed()
        yield running


@pytest.mark.e2e
def test_the_kills_reach_to_the_status_that_says_that_it_is_booked(
    research: Research, daemon: DaemonProcess, proxy: FaultProxy
) -> None:
    before = proxy.writes
    research.ask("train", NODES)
    research.wait_for("train", "Provisioned", MADE, within=120)
    assert daemon.running
    assert NODES < proxy.writes - before <= KILLS
    research.cancel("train")
    research.wait_until_nothing_is_left()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.e2e if number in IN_CI else pytest.mark.soak)
        for number in range(1, KILLS + 1)
    ],
)
def test_killed_between_two_writes_it_goes_on_with_the_same_attempt(
    number: int, research: Research, daemon: DaemonProcess, proxy: FaultProxy
) -> None:
    kill = Kill(proxy, daemon, number)
    research.ask("train", NODES)
    kill.wait()
    daemon.start()
    research.wait_for("train", "Provisioned", MADE, within=120)
    made = research.attempts()
    assert set(made) <= {"1"}, research.told("train")
    assert len(made) <= NODES
    research.wait_for("train", "BookingExpired", ("True", "CapacityReservationTimeExpired"))
    research.wait_until_nothing_is_left()
