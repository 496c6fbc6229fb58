"""The real daemon, as a process, with the token of a service account that has only the shipped RBAC."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.ports import free_port
from tests.controlplane.programs import find_data
from tests.controlplane.rest import Rest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "headroom-system"
ACCOUNT = "headroom"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def install_rbac(plane: ControlPlane) -> Path:
    """Apply what config/rbac ships, nothing else, and return the account's kubeconfig."""
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for file in sorted((ROOT / "config" / "rbac").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] != "Kustomization":
                plane.api.apply(document)
    return plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)


class DaemonProcess:
    """`headroom run` on one repository and one kubeconfig; starts in the `with` block and ends with it.

    repository: a folder, or a URL, which it can push to.
    """

    def __init__(self, repository: Path | str, kubeconfig: Path, work: Path, **settings: str) -> None:
        self._repository = repository
        self._kubeconfig = kubeconfig
        self._work = work
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {
            "HEADROOM_GIT_INTERVAL": "1s",
            "HEADROOM_GIT_STATE": str(work / "clone"),
            "HEADROOM_PASSES_INTERVAL": "20s",
            "HEADROOM_PASSES_QUIET": "500ms",
            "HEADROOM_LOGS_FORM": "json",
            "HEADROOM_LISTEN": self.address,
            **{f"HEADROOM_{name.upper()}": value for name, value in settings.items()},
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is not None:
            sys.stderr.write(f"--- the daemon's log ends with\n{self.log()[-6000:]}\n")

    @property
    def address(self) -> str:
        """Where its pages are."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = [
            str(Path(sys.executable).with_name("headroom")),
            "run",
            f"--repo={self._repository}",
            "--revision=main",
            "--cluster=kubeconfig",
            f"--catalog={find_data('instance_types.json')}",
        ]
        environment = {**os.environ, **self._settings, "KUBECONFIG": str(self._kubeconfig)}
        with (self._work / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def stop(self) -> int:
        """End it as a cluster would, and return its exit code."""
        assert self._process is not None
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """As a lost machine would: no warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=30)

    def log(self) -> str:
        return (self._work / "daemon.log").read_text(errors="replace")

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as response:
            text: str = response.read().decode()
            return text

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.fetch("/status"))
        return document

    def wait_until_ready(self) -> None:
        eventually(lambda: self.fetch("/readyz"), within=60, what="the daemon is ready")

    def wait_until_settled(self, api: Rest) -> None:
        """Until two passes in turn that were asked for from now on find nothing left to change.

        What the status says by itself is of the last pass, which may have begun before the last pods were bound.
        """
        eventually(
            lambda: self._settles(api) and self._settles(api), within=60, what="the daemon has settled", every=0.5
        )

    def _settles(self, api: Rest) -> bool:
        asked = uuid.uuid4().hex
        annotated = {"metadata": {"annotations": {"headroom.dev/requestedAt": asked}}}
        api.patch("v1", "ConfigMap", "headroom", annotated, namespace=NAMESPACE)
        eventually(
            lambda: self.status()["handledRequest"] == asked, within=30, what="a pass that was asked for", every=0.1
        )
        return bool(self.status()["settled"])
