"""Attempts of atomic requests on real Karpenter: all at once, within limits or not at all, and the same end after a kill.

tests/properties/test_requests.py kills at every write of the embedded cluster, to the end of the booking and of a rollback.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.controlplane import eventually
from tests.controlplane.documents import node_class
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy
from tests.e2e.kill import Kill
from tests.e2e.research import CHECK, FOUND, MADE, NOT_FOUND, Research, node_pool, pod_template

NODES = 3
KILLS = 10
"""From the inventory's first write, by way of what the repository has, the request's first status and events, to the last NodeClaim."""
IN_CI = (4, 8, 9)
MANIFESTS: dict[str, str | None] = {
    "batch.yaml": yaml.safe_dump_all([node_pool(cpu="4", limit="120"), pod_template("3")])
}
"""Each worker has a node to itself."""


@pytest.mark.e2e
def test_a_request_is_made_in_one_step_and_checks_say_what_is_left(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """110 nodes from none, more than a pass makes of others; then the booked room is not there for a check."""
    repository.push(MANIFESTS)
    with DaemonProcess(repository.folder, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        research.ask("train", ("worker", 110))
        research.wait_for("train", "Provisioned", MADE, within=180)
        assert research.attempts() == ["1"] * 110, research.told("train")
        research.ask("check", class_name=CHECK)
        research.wait_for("check", "Provisioned", NOT_FOUND)
        research.ask("too-many", ("worker", 20), ValidUntilSeconds="20")
        research.wait_for("too-many", "Provisioned", NOT_FOUND)
        research.wait_for("too-many", "Failed", ("True", "Expired"), within=60)
        assert len(research.claims()) == 110
        research.cancel("train")
        research.wait_for("check", "Provisioned", FOUND)
        eventually(lambda: len(research.claims()) == 1, within=120, what="the rest is given back", every=1)


@pytest.mark.e2e
def test_a_node_class_that_comes_late_fails_no_attempt(
    research: Research, repository: CapacityRepository, kubeconfig: Path, tmp_path: Path
) -> None:
    """On a busy cluster Karpenter may say for a while that the NodeClass of a new pool is not there."""
    documents = [node_pool(cpu="4", node_class_name="late"), pod_template("3")]
    repository.push({"batch.yaml": yaml.safe_dump_all(documents)})
    research.ask("train", ("worker", NODES))
    with DaemonProcess(repository.folder, kubeconfig, tmp_path) as daemon:
        daemon.wait_until_ready()
        research.wait_for("train", "Provisioned", NOT_FOUND)
        research.api.apply(node_class("late"))
        research.wait_for("train", "Provisioned", MADE)
        assert research.attempts() == ["1"] * NODES, research.told("train")
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
    number: int,
    research: Research,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    repository.push(MANIFESTS)
    research.ask("train", ("worker", NODES))
    with FaultProxy(kubeconfig, tmp_path) as proxy:
        daemon = DaemonProcess(repository.folder, proxy.kubeconfig, tmp_path)
        kill = Kill(proxy, daemon, number, "after")
        with daemon:
            kill.wait()
            daemon.start()
            research.wait_for("train", "Provisioned", MADE, within=120)
            assert research.attempts() == ["1"] * NODES, research.told("train")
            research.cancel("train")
            research.wait_until_nothing_is_left()
