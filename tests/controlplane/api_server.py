"""etcd and kube-apiserver: the part of the control plane that everything else talks to.

Started and stopped by `ControlPlane`. Users have fixed tokens, RBAC is on, and each request is
in the audit log.
"""

from __future__ import annotations

import base64
import json
import secrets
from typing import TYPE_CHECKING

from tests.controlplane import audit
from tests.controlplane.ports import LOOPBACK, free_port
from tests.controlplane.process import Process
from tests.controlplane.rest import Rest
from tests.controlplane.signing_key import private_key_pem
from tests.kubeconfigs import write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

ADMIN = "admin"
_MASTERS = "system:masters"
# Each program is a user of its own, so that the audit log tells them apart. The two system:
# users get their rights from the cluster's own RBAC bootstrap.
_PROGRAMS = {
    "system:kube-scheduler": "",
    "system:kube-controller-manager": "",
    "karpenter": _MASTERS,
    "kwok": _MASTERS,
    "kueue": _MASTERS,
}
"""With their groups."""
_QUIET_USERS = ("system:apiserver", *_PROGRAMS)


class ApiServer:
    """An etcd and a kube-apiserver that uses it, on ports that stay the same over restarts."""

    def __init__(self, folder: Path, *, service_accounts: bool) -> None:
        """Prepare files and commands.

        `service_accounts`: pods need their namespace's service account, which only kube-controller-manager makes.
        """
        self._folder = folder
        self._tokens = {user: secrets.token_hex(16) for user in (ADMIN, *_PROGRAMS)}
        self._ca_file = folder / "certs" / "apiserver.crt"
        self._port = free_port()
        self.url = f"https://{LOOPBACK}:{self._port}"
        self.audit_log = audit.AuditLog(folder / "audit.log")
        self._write_files()
        self.etcd_url = f"http://{LOOPBACK}:{free_port()}"
        self._etcd = Process("etcd", self._etcd_arguments(), folder=folder)
        arguments = self._server_arguments(service_accounts=service_accounts)
        self._server = Process("kube-apiserver", arguments, folder=folder)

    def start(self) -> None:
        """Start what does not run, and wait until the server is ready."""
        if not self._etcd.running:
            self._etcd.start()
        # Not waited for: the server tries until etcd answers, and has much to do meanwhile.
        self._server.start()
        api = self.rest(ADMIN)
        self._server.wait_until(lambda: self._ca_file.exists() and api.request("GET", "/readyz"))

    def stop_server(self) -> None:
        """Stop kube-apiserver only; what is stored stays, `start` brings it back.

        At once: an orderly end would wait for every watch to be closed by its client.
        """
        self._server.stop(grace=0)

    def stop(self) -> None:
        """Stop both."""
        self.stop_server()
        self._etcd.stop()

    def rest(self, user: str, *, patient: bool = True) -> Rest:
        """A client for one of the users."""
        return Rest(self.url, token=self._tokens[user], ca_file=self._ca_file, patient=patient)

    def kubeconfig(self, user: str, token: str = "", namespace: str = "default") -> Path:
        """Path of a kubeconfig for one of the users, or for any other with a token."""
        authority = base64.b64encode(self._ca_file.read_bytes()).decode()
        path = self._folder / f"{user.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(
            path,
            self.url,
            token or self._tokens[user],
            namespace=namespace,
            **{"certificate-authority-data": authority},
        )

    def _write_files(self) -> None:
        groups = {ADMIN: _MASTERS, **_PROGRAMS}
        tokens = self._folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text("".join(f'{token},{user},{user},"{groups[user]}"\n' for user, token in self._tokens.items()))
        key = self._folder / "service-accounts.key"
        # Kept where the state is kept, so that tokens given out earlier stay good.
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(private_key_pem())
        policy = self._folder / "audit-policy.json"
        policy.write_text(json.dumps(audit.policy(_QUIET_USERS), indent=2))

    def _etcd_arguments(self) -> list[str]:
        peer_url = f"http://{LOOPBACK}:{free_port()}"
        return [
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            # Survives a killed process, which is all that is asked here.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _server_arguments(self, *, service_accounts: bool) -> list[str]:
        key = self._folder / "service-accounts.key"
        return [
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={self._port}",
            # Without these two it looks for a network interface other than loopback.
            f"--advertise-address={LOOPBACK}",
            "--endpoint-reconciler-type=none",
            # It makes itself a certificate here.
            f"--cert-dir={self._ca_file.parent}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            # The private key includes the public one.
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--audit-policy-file={self._folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log.path}",
            # Each event is in the file when its request is done; and one file, never rotated.
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=100000",
            "--allow-privileged=true",
            # One user's load must not slow another's on a small machine.
            "--enable-priority-and-fairness=false",
            "--profiling=false",
            *([] if service_accounts else ["--disable-admission-plugins=ServiceAccount"]),
        ]
