"""The kubeconfig that a connection comes from, plugins and identity providers that renew its token, and what waits for them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from reconciler.cluster.access import Access, kubeconfig_access
from reconciler.cluster.connection import Connection
from reconciler.model.errors import Failure, Invalid, Transient
from tests.controlplane.waiting import eventually
from tests.kubeconfigs import write_kubeconfig

SCRIPT = """
import json, sys
from reconciler.cluster.access import current_context, kubeconfig_access
access = kubeconfig_access(path=sys.argv[1])
print(json.dumps({
    "context": current_context(sys.argv[1]),
    "host": access.host,
    "headers": dict(access.authorization()),
    "models": [name for name in sys.modules if name.startswith(("kubernetes.client.models", "kubernetes.client.api"))],
}))
"""


def kubeconfig(folder: Path, user: dict[str, Any]) -> Path:
    return write_kubeconfig(folder / "kubeconfig", "http://127.0.0.1:6443", user)


def told(folder: Path, user: dict[str, Any]) -> dict[str, Any]:
    """By a process of its own: in this one a test may have imported the whole package."""
    command = [sys.executable, "-c", SCRIPT, str(kubeconfig(folder, user))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_kubeconfig_is_read_without_the_models(tmp_path: Path) -> None:
    assert told(tmp_path, {"token": "of-mine"}) == {
        "context": "controlplane",
        "host": "http://127.0.0.1:6443",
        "headers": {"authorization": "Bearer of-mine"},
        "models": [],
    }


def test_an_exec_plugin_is_asked_for_the_token(tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of-the-plugin"},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [json.dumps(credential)],
        "interactiveMode": "Never",
    }
    assert told(tmp_path, {"exec": plugin})["headers"] == {"authorization": "Bearer of-the-plugin"}


PLUGIN = """#!/bin/sh
cd $(dirname "$0")
echo . >> runs
[ ! -f hangs ] || sleep 20
sleep 0.1
end=2020-01-01T00:00:00Z; [ ! -f renewed ] || end=2099-01-01T00:00:00Z
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status":
  {"token": "t", "expirationTimestamp": "'$end'"}}'
"""


def asked_by_plugin(folder: Path) -> dict[str, Any]:
    """The user of a kubeconfig. Its token has expired unless the file `renewed` is there."""
    plugin = folder / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o700)
    return {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }


def test_a_token_that_expires_is_renewed_by_one_of_all_threads(tmp_path: Path) -> None:
    access = kubeconfig_access(path=str(kubeconfig(tmp_path, asked_by_plugin(tmp_path))))
    (tmp_path / "renewed").touch()
    threads = [Thread(target=access.authorization) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "runs").read_text().split() == [".", "."], "one to begin with, one to renew"


def test_closing_does_not_wait_for_a_plugin_that_hangs(tmp_path: Path) -> None:
    path = str(kubeconfig(tmp_path, asked_by_plugin(tmp_path)))
    connection = Connection(lambda: kubeconfig_access(path=path))
    (tmp_path / "hangs").touch()

    def ask() -> None:
        with suppress(Failure):
            connection.request("GET", "/")

    Thread(target=ask, daemon=True).start()
    eventually((tmp_path / "runs").exists, within=20, what="the plugin runs", every=0.01)
    closing = Thread(target=connection.close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()


def test_a_call_goes_on_with_the_last_token_while_the_plugin_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token may be good for minutes still, and the Lease cannot wait."""
    monkeypatch.setattr("reconciler.cluster.access._PLUGIN_SECONDS", 0.2)
    authorization = kubeconfig_access(path=str(kubeconfig(tmp_path, asked_by_plugin(tmp_path)))).authorization
    assert authorization() == {"authorization": "Bearer t"}
    (tmp_path / "runs").unlink()
    (tmp_path / "hangs").touch()
    Thread(target=authorization, daemon=True).start()
    eventually((tmp_path / "runs").exists, within=20, what="the plugin runs", every=0.01)
    assert authorization() == {"authorization": "Bearer t"}


def test_a_call_does_not_wait_for_access_that_another_renews(tmp_path: Path) -> None:
    path = str(kubeconfig(tmp_path, {"token": "t"}))
    renewing, renewed, loads = Event(), Event(), []

    def load() -> Access:
        loads.append(path)
        if len(loads) > 1:
            renewing.set()
            renewed.wait(20)
        return kubeconfig_access(path=path)

    connection = Connection(load)
    first = connection._accessed()
    renewal = Thread(target=connection._accessed, kwargs={"instead_of": first}, daemon=True)
    renewal.start()
    assert renewing.wait(20)
    assert connection._accessed() is first
    renewed.set()
    renewal.join(20)
    assert connection._accessed() is not first


def test_a_kubeconfig_that_is_being_replaced_is_a_failure_that_passes() -> None:
    def load() -> Access:
        raise Invalid("the kubeconfig is empty", hint="look")

    with pytest.raises(Transient, match="the kubeconfig is empty"):
        Connection(load).request("PATCH", "/")


class Issuer(BaseHTTPRequestHandler):
    """Of OpenID Connect: where tokens are, and a new one. Its first folder says how it is: "away" has no endpoint for tokens."""

    def do_GET(self) -> None:
        host = "127.0.0.1:1" if self.path.startswith("/away") else self.headers["Host"]
        document = {"token_endpoint": f"http://{host}{self.path[:7]}token"}
        self._answer(document)

    def do_POST(self) -> None:
        if self.path.startswith("/strict"):
            self._answer({"error": "invalid_grant", "error_description": "the session is over"}, 400)
        else:
            self._answer({"id_token": "a-new-one", "refresh_token": "b", "access_token": "c", "token_type": "bearer"})

    def _answer(self, document: dict[str, str], status: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # an issuer on loopback, without TLS
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def expired(issuer: str) -> dict[str, Any]:
    """A user whose token is to be renewed by the issuer."""

    def part(document: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    config = {
        "client-id": "headroom",
        "client-secret": "of-headroom",
        "id-token": f"{part({'alg': 'none'})}.{part({'exp': 1})}.{part({})}",
        "idp-issuer-url": issuer,
        "refresh-token": "a",
    }
    return {"auth-provider": {"name": "oidc", "config": config}}


def test_a_token_of_openid_connect_that_has_expired_is_renewed(tmp_path: Path, issuer: str) -> None:
    assert told(tmp_path, expired(issuer))["headers"] == {"authorization": "Bearer a-new-one"}


@pytest.mark.parametrize(
    ("way", "failure", "words"),
    [
        ("", Transient, "does not answer: Connection refused"),
        ("/away/", Transient, "does not answer: Connection refused"),
        ("https", Transient, "does not answer: "),
        ("/strict", Invalid, "(invalid_grant) the session is over"),
    ],
)
def test_an_identity_provider_that_is_down_or_refuses_is_no_defect_of_headroom(
    tmp_path: Path, issuer: str, way: str, failure: type[Failure], words: str
) -> None:
    address = issuer.replace("http", "https") if way == "https" else f"{issuer}{way}"
    file = kubeconfig(tmp_path, expired(address if way else "http://127.0.0.1:1"))
    with pytest.raises(failure) as raised:
        kubeconfig_access(path=str(file))
    assert type(raised.value) is failure
    assert words in raised.value.message
    assert str(file) in raised.value.message
