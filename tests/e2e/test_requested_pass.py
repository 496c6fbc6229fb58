"""`headroom.dev/requestedAt`, walked whole: a person annotates the inventory, a pass is made at once, and the status tells of it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import NAMESPACE, DaemonProcess

pytestmark = pytest.mark.e2e

TEMPLATE = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: web, namespace: default}
template:
  spec:
    containers: [{name: main, image: "main:1", resources: {requests: {cpu: 1}}}]
"""


def headroom_status(daemon: DaemonProcess) -> str:
    command = [str(Path(sys.executable).with_name("headroom")), "status", "--address", daemon.address]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def is_handled(daemon: DaemonProcess, moment: str) -> bool:
    return bool(daemon.status()["handledRequest"] == moment)


def requested_passes(daemon: DaemonProcess) -> int:
    rows = [json.loads(line) for line in daemon.log().splitlines() if line.startswith("{")]
    return sum(row["event"] == "pass" and row["trigger"] == "request" for row in rows)


def test_a_pass_is_made_at_once_and_the_status_tells_of_it(
    empty_control_plane: ControlPlane, kubeconfig: Path, repository: CapacityRepository, tmp_path: Path
) -> None:
    api = empty_control_plane.api
    repository.push({"web.yaml": TEMPLATE})
    # Nothing else makes a pass: no tick for an hour, and a change of the cluster waits for an hour of quiet.
    slow = {"passes_interval": "1h", "passes_quiet": "1h", "passes_quiet_at_most": "1h", "logs_level": "debug"}
    with DaemonProcess(repository.folder, kubeconfig, tmp_path, **slow) as daemon:
        daemon.wait_until_ready()
        before = eventually(daemon.status, within=60, what="the first pass was made")
        assert before["handledRequest"] == ""
        for moment in ("noon", "one o'clock"):
            asked = {"metadata": {"annotations": {"headroom.dev/requestedAt": moment}}}
            api.patch("v1", "ConfigMap", "headroom", asked, namespace=NAMESPACE)
            eventually(partial(is_handled, daemon, moment), within=30, what="a pass that was asked for")
            assert f"  requested   {moment}: a pass was made for it\n" in headroom_status(daemon)
        assert daemon.status()["passes"] == before["passes"] + 2
        assert requested_passes(daemon) == 2


def test_the_repository_is_polled_first(
    empty_control_plane: ControlPlane, kubeconfig: Path, repository: CapacityRepository, tmp_path: Path
) -> None:
    """The pass was made of the old commit."""
    repository.push({"web.yaml": TEMPLATE})
    slow = {"passes_interval": "1h", "git_interval": "1h"}
    with DaemonProcess(repository.folder, kubeconfig, tmp_path, **slow) as daemon:
        daemon.wait_until_ready()
        before = eventually(daemon.status, within=60, what="the first pass was made")
        repository.push({"web.yaml": TEMPLATE.replace("cpu: 1", "cpu: 2")})
        asked = {"metadata": {"annotations": {"headroom.dev/requestedAt": "noon"}}}
        empty_control_plane.api.patch("v1", "ConfigMap", "headroom", asked, namespace=NAMESPACE)
        eventually(partial(is_handled, daemon, "noon"), within=30, what="a pass that was asked for")
        assert daemon.status()["revision"] != before["revision"]
