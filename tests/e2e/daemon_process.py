"""The real daemon, as a process, with the token of a service account that has only the shipped RBAC."""

from __future__ import annotations

import uuid
from pathlib import Path

import yaml

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.programs import find_data
from tests.controlplane.rest import Rest
from tests.running_daemon import ROOT, RunningDaemon

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


class DaemonProcess(RunningDaemon):
    """On one repository and one kubeconfig. repository: a folder, or a URL, which it can push to."""

    def __init__(self, repository: Path | str, kubeconfig: Path, work: Path, **settings: str) -> None:
        words = (f"--repo={repository}", "--revision=main", "--cluster=kubeconfig")
        usual = {
            "git_interval": "1s",
            "git_state": str(work / "clone"),
            "passes_interval": "20s",
            "passes_quiet": "500ms",
        }
        super().__init__(
            work,
            *words,
            f"--catalog={find_data('instance_types.json')}",
            environment={"KUBECONFIG": str(kubeconfig)},
            **{**usual, **settings},
        )

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
