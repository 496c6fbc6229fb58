"""The whole control plane: etcd, API server, scheduler, controllers, Karpenter and KWOK.

Used by the fixtures, by tests that want one of their own, and by `python -m
tests.controlplane`. Each is a process on loopback; all of them end with the `with` block.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.controlplane.actors import ACTORS, ALL_ACTORS, Karpenter, KarpenterOptions
from tests.controlplane.api_server import ADMIN, ApiServer
from tests.controlplane.process import Process
from tests.controlplane.programs import find_data
from tests.controlplane.rest import ApiUnreachableError, condition
from tests.controlplane.sweep import sweep
from tests.controlplane.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tests.controlplane.audit import AuditEvent
    from tests.controlplane.rest import Document, Rest

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_TOKEN_SECONDS = 24 * 3600
_MARKER = "headroom-audit-marker"


class ControlPlane:
    """A real control plane; it runs in a `with` block.

    `api` is a client with all rights. Its lists are those of one cluster: a test that shares
    it should use a namespace of its own, or call `sweep` when it is done.
    """

    def __init__(
        self,
        *,
        actors: Sequence[str] = ALL_ACTORS,
        karpenter: KarpenterOptions | None = None,
        state_dir: Path | None = None,
    ) -> None:
        """Nothing runs yet, and nothing is looked for.

        `actors`: the programs that act on what is stored; without any, it starts fastest. `state_dir`: where everything is
        written, and found again at the next start; without one, a folder that goes at the end.
        """
        self._actors = frozenset(actors)
        self._karpenter_options = karpenter or KarpenterOptions()
        self._state_dir = state_dir
        self._stack = ExitStack()
        self.folder: Path
        """Where logs, the audit log and the state are."""
        self._server: ApiServer
        self._karpenter: Karpenter
        self._crds: list[Document] = []

    def __enter__(self) -> Self:
        """Start everything and wait until it works; nothing is left running if that fails."""
        with ExitStack() as stack:
            self.folder = self._make_folder(stack)
            self._server = ApiServer(self.folder, service_accounts="kube-controller-manager" in self._actors)
            stack.callback(self._server.stop)
            self._server.start()
            self._start_actors(stack)
            self._install_crds()
            if "karpenter" in self._actors:
                self._karpenter = self._made_karpenter(self._karpenter_options)
                stack.callback(self._stop_karpenter)
                self._karpenter.start()
            if "kube-controller-manager" in self._actors:
                self._wait_for_service_accounts()
            if "karpenter" in self._actors:
                self._karpenter.wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop everything."""
        self._stack.close()

    def stop_api_server(self) -> None:
        """Stop kube-apiserver: connections break, new ones are refused. etcd goes on."""
        self._server.stop_server()

    def start_api_server(self) -> None:
        """Start kube-apiserver again, on the same port, and wait until it is ready."""
        self._server.start()
        self._wait_for_crds()

    def restart_karpenter(self, options: KarpenterOptions | None = None) -> None:
        """Stop Karpenter and start it with other options, or with those it first had."""
        self._stop_karpenter()
        self._karpenter = self._made_karpenter(options or self._karpenter_options)
        self._karpenter.start()
        self._karpenter.wait_until_ready()

    def sweep(self) -> None:
        """Delete what tests made (namespaces, pools, claims, nodes), and wait for it."""
        sweep(self.api, controllers="kube-controller-manager" in self._actors)

    # Using it

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self._server.url

    @property
    def etcd_url(self) -> str:
        """Where etcd listens, for what fills its store directly."""
        return self._server.etcd_url

    @property
    def karpenter_metrics_url(self) -> str:
        """Where Karpenter serves its metrics."""
        return self._karpenter.metrics_url

    @cached_property
    def api(self) -> Rest:
        """A client with all rights."""
        return self._server.rest(ADMIN)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Path of a kubeconfig for the admin, or for one of the programs."""
        return self._server.kubeconfig(user)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Path of a kubeconfig with a token for a service account, good for a day.

        The account and its namespace are made if they are not there.
        """
        self._ensure("Namespace", {"name": namespace})
        self._ensure("ServiceAccount", {"name": name, "namespace": namespace})
        account = self.api.path("v1", "ServiceAccount", namespace, name)
        answer = self.api.document(
            "POST",
            f"{account}/token",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_SECONDS},
            },
        )
        return self._server.kubeconfig(
            f"system:serviceaccount:{namespace}:{name}", answer["status"]["token"], namespace
        )

    # Counting

    def audit_mark(self) -> int:
        """The present end of the audit log, for `since` below."""
        self._settle_audit_log()
        return self._server.audit_log.mark()

    def audit_events(self, *, since: int = 0) -> list[AuditEvent]:
        """What was asked of the API server since a mark, oldest first.

        Leases of the control plane's own programs and health checks are not in it.
        """
        self._settle_audit_log()
        return [event for event in self._server.audit_log.events(since) if _MARKER not in event.uri]

    def writes_by(self, user: str, *, since: int = 0) -> list[AuditEvent]:
        """What a user meant to change since a mark, refused attempts included.

        Dry runs and questions (access reviews, token requests) do not count. A service account
        is `system:serviceaccount:NAMESPACE:NAME`.
        """
        return [e for e in self.audit_events(since=since) if e.user == user and e.is_write]

    # Inside

    def _make_folder(self, stack: ExitStack) -> Path:
        if self._state_dir is not None:
            folder = self._state_dir.resolve()
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        folder = Path(tempfile.mkdtemp(prefix="headroom-controlplane-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _start_actors(self, stack: ExitStack) -> None:
        started = [
            Process(name, arguments(self.folder, self._kubeconfig_of(name)), folder=self.folder)
            for name, arguments in ACTORS.items()
            if name in self._actors
        ]
        for process in started:
            stack.callback(process.stop)
            process.start()
        # Runs before the stops above: they end together instead of one after the other.
        for process in started:
            stack.callback(process.signal_stop)

    def _stop_karpenter(self) -> None:
        self._karpenter.stop()

    def _made_karpenter(self, options: KarpenterOptions) -> Karpenter:
        return Karpenter(self.folder, self._kubeconfig_of("karpenter"), options)

    def _kubeconfig_of(self, program: str) -> Path:
        return self._server.kubeconfig(f"system:{program}" if program.startswith("kube-") else program)

    def _install_crds(self) -> None:
        files = sorted(find_data("karpenter-crds").glob("*.yaml"))
        applied = [self.api.apply(yaml.load(file.read_text(), Loader=yaml.CSafeLoader)) for file in files]
        self._crds = applied
        self._wait_for_crds()

    def _wait_for_crds(self) -> None:
        # Asked again at once: a second's patience for each of them would be most of the start.
        api = self._server.rest(ADMIN, patient=False)
        for crd in self._crds:
            what = f"the CRD {crd['metadata']['name']} is served"
            eventually(partial(_is_served, api, crd), within=30, what=what)

    def _wait_for_service_accounts(self) -> None:
        """Pods can be made in a namespace once its default service account is there."""
        eventually(
            lambda: self.api.get("v1", "ServiceAccount", "default", namespace="default"),
            within=60,
            what="kube-controller-manager has made the default service account",
        )

    def _ensure(self, kind: str, metadata: Document) -> None:
        name, namespace = metadata["name"], metadata.get("namespace")
        if self.api.get("v1", kind, name, namespace=namespace) is None:
            self.api.create({"apiVersion": "v1", "kind": kind, "metadata": metadata})

    def _settle_audit_log(self) -> None:
        """Wait until all requests answered by now are in the log.

        An event is written just after its answer was sent; so a request of our own is made,
        and waited for. With the server down there is nothing more to come.
        """
        marker = f"{_MARKER}={secrets.token_hex(8)}"
        before = self._server.audit_log.mark()
        try:
            self.api.request("GET", "/version", query=dict([marker.split("=")]))
        except ApiUnreachableError:
            return
        eventually(
            lambda: any(marker in e.uri for e in self._server.audit_log.events(before)),
            within=10,
            what="the audit log has the latest request",
            every=0.02,
        )


def _is_served(api: Rest, crd: Document) -> bool:
    """Whether a CRD is Established and, which comes a little later, its objects can be listed."""
    if condition(api.get(*_CRD, crd["metadata"]["name"]), "Established") != "True":
        return False
    spec = crd["spec"]
    served = next(version["name"] for version in spec["versions"] if version["served"])
    api.list(f"{spec['group']}/{served}", spec["names"]["kind"])
    return True
