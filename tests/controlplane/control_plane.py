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

from tests.controlplane.api_server import ADMIN, CONTROLLER_MANAGER, KARPENTER, KWOK, SCHEDULER, ApiServer
from tests.controlplane.controllers import controller_manager, scheduler
from tests.controlplane.karpenter import Karpenter, KarpenterOptions
from tests.controlplane.kwok import kwok
from tests.controlplane.lifeline import Lifeline
from tests.controlplane.programs import find_data
from tests.controlplane.rest import ApiUnreachableError, condition
from tests.controlplane.sweep import sweep
from tests.controlplane.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from tests.controlplane.audit import AuditEvent
    from tests.controlplane.rest import Document, Rest

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_TOKEN_SECONDS = 24 * 3600
_MARKER = "headroom-audit-marker"
_NOT_STARTED = "the control plane has not been started"


class ControlPlane:
    """A real control plane; use it in a `with` block, or call `start` and `stop`.

    `api` is a client with all rights. Its lists are those of one cluster: a test that shares
    it should use a namespace of its own, or call `sweep` when it is done.
    """

    def __init__(
        self,
        *,
        scheduler: bool = True,
        controller_manager: bool = True,
        karpenter: bool | KarpenterOptions = True,
        kwok: bool = True,
        users: Mapping[str, Sequence[str]] | None = None,
        state_dir: Path | None = None,
    ) -> None:
        """Nothing runs yet, and nothing is looked for.

        `users`: further users by name, with their groups. `state_dir`: where everything is
        written, and found again at the next start; without one, a folder that goes at the end.
        """
        self._with_scheduler = scheduler
        self._with_controller_manager = controller_manager
        self._with_kwok = kwok
        self._karpenter_options: KarpenterOptions | None = None
        if isinstance(karpenter, KarpenterOptions):
            self._karpenter_options = karpenter
        elif karpenter:
            self._karpenter_options = KarpenterOptions()
        self._users = dict(users or {})
        self._state_dir = state_dir
        self._folder: Path | None = None
        self._running: ExitStack | None = None
        self._api_server: ApiServer | None = None
        self._karpenter: Karpenter | None = None
        self._crds: list[Document] = []

    @classmethod
    def api_only(cls, *, state_dir: Path | None = None) -> Self:
        """Etcd and API server, with the CRDs but nothing that acts: starts fastest."""
        return cls(scheduler=False, controller_manager=False, karpenter=False, kwok=False, state_dir=state_dir)

    def __enter__(self) -> Self:
        """Start; nothing is left running if that fails."""
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop everything."""
        self.stop()

    # Starting and stopping

    def start(self) -> None:
        """Start everything and wait until it works."""
        with ExitStack() as stack:
            folder = self._folder = self._make_folder(stack)
            lifeline = Lifeline()
            stack.callback(lifeline.close)
            server = ApiServer(folder, lifeline, users=self._users, service_accounts=self._with_controller_manager)
            self._api_server = server
            stack.callback(server.stop)
            server.start()
            self._start_controllers(folder, lifeline, stack)
            self._install_crds()
            self._start_karpenter(folder, lifeline, stack)
            if self._with_controller_manager:
                self._wait_for_service_accounts()
            if self._karpenter is not None:
                self._karpenter.wait_until_ready()
            self._running = stack.pop_all()

    def stop(self) -> None:
        """Stop everything; nothing happens if it does not run."""
        stack, self._running = self._running, None
        if stack is not None:
            stack.close()

    def stop_api_server(self) -> None:
        """Stop kube-apiserver: connections break, new ones are refused. etcd goes on."""
        self._server.stop_server()

    def start_api_server(self) -> None:
        """Start kube-apiserver again, on the same port, and wait until it is ready."""
        self._server.start()
        self._wait_for_crds()

    def restart_karpenter(self, options: KarpenterOptions | None = None) -> None:
        """Stop Karpenter and start it with other options, or with those it first had."""
        chosen = options or self._karpenter_options
        if self._karpenter is None or chosen is None:
            raise RuntimeError(_without("Karpenter"))
        self._karpenter.stop()
        self._karpenter.start(chosen)
        self._karpenter.wait_until_ready()

    def sweep(self) -> None:
        """Delete what tests made (namespaces, pools, claims, nodes), and wait for it."""
        sweep(self.api, controllers=self._with_controller_manager)

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
    def folder(self) -> Path:
        """Where logs, the audit log and the state are."""
        if self._folder is None:
            raise RuntimeError(_NOT_STARTED)
        return self._folder

    @property
    def karpenter_metrics_url(self) -> str:
        """Where Karpenter serves its metrics."""
        if self._karpenter is None:
            raise RuntimeError(_without("Karpenter"))
        return self._karpenter.metrics_url

    @cached_property
    def api(self) -> Rest:
        """A client with all rights."""
        return self._server.rest(ADMIN)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Path of a kubeconfig for the admin, or for one of the `users`."""
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
        user = f"system:serviceaccount:{namespace}:{name}"
        token = answer["status"]["token"]
        return self._server.kubeconfig_for_token(user, token, namespace)

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

    @property
    def _server(self) -> ApiServer:
        if self._api_server is None:
            raise RuntimeError(_NOT_STARTED)
        return self._api_server

    def _make_folder(self, stack: ExitStack) -> Path:
        if self._state_dir is not None:
            folder = self._state_dir.resolve()
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        folder = Path(tempfile.mkdtemp(prefix="headroom-controlplane-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _start_controllers(self, folder: Path, lifeline: Lifeline, stack: ExitStack) -> None:
        config = self._server.kubeconfig
        started = []
        if self._with_scheduler:
            started.append(scheduler(folder, lifeline, kubeconfig=config(SCHEDULER)))
        if self._with_controller_manager:
            started.append(controller_manager(folder, lifeline, kubeconfig=config(CONTROLLER_MANAGER)))
        if self._with_kwok:
            started.append(kwok(folder, lifeline, kubeconfig=config(KWOK)))
        for process in started:
            stack.callback(process.stop)
            process.start()
        # Runs before the stops above: they end together instead of one after the other.
        for process in started:
            stack.callback(process.signal_stop)

    def _start_karpenter(self, folder: Path, lifeline: Lifeline, stack: ExitStack) -> None:
        if self._karpenter_options is None:
            return
        config = self._server.kubeconfig(KARPENTER)
        self._karpenter = Karpenter(folder, lifeline, kubeconfig=config)
        stack.callback(self._karpenter.stop)
        self._karpenter.start(self._karpenter_options)

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


def _without(program: str) -> str:
    return f"this control plane runs without {program}"
