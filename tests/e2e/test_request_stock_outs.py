"""Part of an atomic request cannot be launched on real Karpenter: nothing of it stays, and it is tried again while it is valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import node_class
from tests.controlplane.karpenter import KarpenterOptions
from tests.controlplane.programs import find_data
from tests.controlplane.rest import Document
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.research import MADE, Research, node_pool, pod_template

NEAR, FAR = ("near", 2), ("far", 2)
FAILED_ATTEMPT = ("False", "AttemptFailed")
NODE_CLASS = ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass")
CPU_OF_FAR = "8"


@pytest.fixture
def daemon(
    request: pytest.FixtureRequest,
    research: Research,
    repository: CapacityRepository,
    kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[DaemonProcess]:
    """Beside two pools that sell different types, and a PodTemplate for each of them. A node holds one pod.

    Its parameter: how many types a NodeClaim lists. Of one, the others may still be had as soon as there is capacity.
    """
    research.api.apply(node_class("far"))
    research.api.apply(node_pool("near", cpu="4"))
    research.api.apply(node_pool("far", cpu=CPU_OF_FAR, node_class_name="far"))
    research.api.apply(pod_template("3", "near", nodeSelector={"karpenter.sh/nodepool": "near"}))
    research.api.apply(pod_template("7", "far", nodeSelector={"karpenter.sh/nodepool": "far"}))
    settings = {"requests_first_retry": "5s", "placement_instance_types": getattr(request, "param", "1")}
    with DaemonProcess(repository.folder, kubeconfig, tmp_path, **settings) as running:
        running.wait_until_ready()
        yield running


@contextmanager
def nothing_launched(plane: ControlPlane) -> Iterator[None]:
    """What is asked for meanwhile is launched at the end."""
    plane.stop_karpenter()
    try:
        yield
    finally:
        plane.restart_karpenter()


def ask_while_far_has_no_capacity(research: Research, plane: ControlPlane, **parameters: str) -> None:
    """The KWOK provider answers that there is no capacity where a NodeClaim's class is gone, and Karpenter deletes the NodeClaim."""
    with nothing_launched(plane):
        research.ask("train", NEAR, FAR, **parameters)
        eventually(lambda: research.attempts() == ["1"] * 4, within=60, what="the attempt is under way", every=0.5)
        research.api.delete(*NODE_CLASS, "far")


def without_far(tmp_path: Path) -> KarpenterOptions:
    """A catalog that lacks the types of the pool `far`: its launches fail, and Karpenter gives them up after five minutes."""
    types: list[Document] = json.loads(find_data("instance_types.json").read_text())
    path = tmp_path / "instance_types.json"
    path.write_text(json.dumps([each for each in types if f"-{CPU_OF_FAR}x-" not in each["name"]]))
    return KarpenterOptions(instance_types=path)


@pytest.mark.e2e
@pytest.mark.usefixtures("daemon")
def test_the_rest_is_removed_and_the_next_attempt_has_all_of_it_once_there_is_capacity(
    research: Research, empty_control_plane: ControlPlane
) -> None:
    ask_while_far_has_no_capacity(research, empty_control_plane)
    research.wait_for("train", "Provisioned", FAILED_ATTEMPT)
    assert research.message("train", "Provisioned").startswith("attempt 1 failed, the next one begins at ")
    research.wait_until_nothing_is_left()

    research.api.apply(node_class("far"))
    research.wait_for("train", "Provisioned", MADE)
    assert research.attempts() == ["2"] * 4
    research.cancel("train")
    research.wait_until_nothing_is_left()


@pytest.mark.e2e
def test_it_fails_when_its_time_is_over_and_nothing_of_it_stays(
    daemon: DaemonProcess, research: Research, empty_control_plane: ControlPlane
) -> None:
    ask_while_far_has_no_capacity(research, empty_control_plane, ValidUntilSeconds="40")
    research.wait_for("train", "Provisioned", FAILED_ATTEMPT)
    research.wait_for("train", "Failed", ("True", "Expired"))
    research.wait_until_nothing_is_left()
    passes = daemon.status()["passes"]
    eventually(lambda: daemon.status()["passes"] >= passes + 1, within=60, what="one more pass", every=0.5)
    assert research.claims() == set()


@pytest.mark.soak
@pytest.mark.parametrize("daemon", ["20"], indirect=True)
@pytest.mark.usefixtures("daemon")
def test_launches_that_karpenter_gives_up_fail_the_attempt(
    research: Research, empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Ten minutes: Karpenter waits five for a launch, and what could not be had is stayed away from for three."""
    empty_control_plane.restart_karpenter(without_far(tmp_path))
    try:
        research.ask("train", NEAR, FAR, ValidUntilSeconds="3600")
        research.wait_for("train", "Provisioned", FAILED_ATTEMPT, within=400)
        research.wait_until_nothing_is_left()
    finally:
        empty_control_plane.restart_karpenter()
    research.wait_for("train", "Provisioned", MADE, within=600)
    assert research.attempts() == ["2"] * 4
    research.cancel("train")
    research.wait_until_nothing_is_left()
