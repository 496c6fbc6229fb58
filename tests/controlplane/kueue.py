"""Kueue as a process beside a control plane: it holds Jobs back until their capacity is there.

Made by the `kueue` fixture, for tests that ask for it. It is set up as its own release is, certificates of its webhooks
included: what a kubelet and a Service do there is done here with a file and an ExternalName.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Self

import yaml

from tests.builders import manifest
from tests.controlplane.ports import LOOPBACK, free_port
from tests.controlplane.process import Process
from tests.controlplane.programs import find_data
from tests.controlplane.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.rest import Document, Rest

NAMESPACE = "kueue-system"
_SERVICE = "kueue-webhook-service"
_SECRET = "kueue-webhook-server-cert"
# Of its many integrations only Jobs, and its own kinds.
_WEBHOOK_GROUPS = ("batch", "kueue.x-k8s.io")
_READY_SECONDS = 60.0


class Kueue:
    """One Kueue on a control plane that runs; use it in a `with` block."""

    def __init__(self, plane: ControlPlane) -> None:
        """Nothing runs yet."""
        self._plane = plane
        self._webhook_port = free_port()
        self._health_port = free_port()

    def __enter__(self) -> Self:
        """Install what its release installs, start it, and wait until Jobs can be made."""
        self._install()
        self._process = Process(
            "kueue",
            [
                f"--config={self._write_configuration()}",
                # An API of its own behind the API server, which nobody here asks.
                "--feature-gates=VisibilityOnDemand=false",
            ],
            folder=self._plane.folder,
            environment={"KUBECONFIG": str(self._plane.kubeconfig("kueue"))},
            ready=f"http://{LOOPBACK}:{self._health_port}/readyz",  # once its webhooks answer
        )
        try:
            self._process.start()
            self._mount_certificate()
            self._process.wait_until_ready()
        except BaseException:
            self._process.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop it. Its webhooks stay, so that the control plane is of no more use."""
        self._process.stop()

    @property
    def _certificates(self) -> Path:
        return self._plane.folder / "kueue-certificates"

    def _install(self) -> None:
        api = self._plane.api
        files = [*sorted(find_data("kueue-crds").glob("*.yaml")), find_data("provisioning-request-crd.yaml")]
        definitions = [api.apply(yaml.safe_load(file.read_text())) for file in files]
        for item in definitions:
            spec = item["spec"]
            version, kind = f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]
            eventually(partial(_is_listed, api, version, kind), within=30, what=f"{kind} is served")
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        # Kueue writes its certificates into it.
        api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _SECRET, "namespace": NAMESPACE}})
        # The server finds the webhooks here, and the certificate is for this Service's name.
        api.apply(
            manifest("v1", "Service", _SERVICE, NAMESPACE, spec={"type": "ExternalName", "externalName": "localhost"})
        )
        for document in yaml.safe_load_all(find_data("kueue-webhooks.yaml").read_text()):
            api.apply(self._reduced(document))

    def _reduced(self, configuration: Document) -> Document:
        """Webhooks for the kinds that are here, under the name in which Kueue looks for them, on this port."""
        kept = []
        for webhook in configuration["webhooks"]:
            if webhook["rules"][0]["apiGroups"][0] not in _WEBHOOK_GROUPS:
                continue
            path = webhook["clientConfig"]["service"]["path"]
            service = {"name": _SERVICE, "namespace": NAMESPACE, "path": path, "port": self._webhook_port}
            kept.append({**webhook, "clientConfig": {"service": service}})
        name = f"kueue-{configuration['metadata']['name']}"
        return {**configuration, "metadata": {"name": name}, "webhooks": kept}

    def _write_configuration(self) -> Path:
        self._certificates.mkdir(exist_ok=True)
        path = self._plane.folder / "kueue.yaml"
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "config.kueue.x-k8s.io/v1beta1",
                    "kind": "Configuration",
                    "namespace": NAMESPACE,
                    "leaderElection": {"leaderElect": False},
                    "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self._health_port}"},
                    "metrics": {"bindAddress": "0"},
                    "webhook": {"host": LOOPBACK, "port": self._webhook_port, "certDir": str(self._certificates)},
                    "integrations": {"frameworks": ["batch/job"]},
                }
            )
        )
        return path

    def _mount_certificate(self) -> None:
        """Put what Kueue has written into its Secret where it looks for it, as a kubelet would."""
        api = self._plane.api

        def data() -> dict[str, str]:
            secret = api.get("v1", "Secret", _SECRET, namespace=NAMESPACE) or {}
            return {name: value for name, value in secret.get("data", {}).items() if name.startswith("tls.")}

        for name, value in eventually(data, within=_READY_SECONDS, what="Kueue has made a certificate").items():
            (self._certificates / name).write_bytes(base64.b64decode(value))


def _is_listed(api: Rest, version: str, kind: str) -> bool:
    api.list(version, kind)
    return True
