"""Connections to an API server, and the kubeconfig that they come from."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import urllib3

from reconciler.cluster.access import Access, kubeconfig_access
from reconciler.cluster.connection import Answer, Connection, RateLimit
from reconciler.model.errors import Failure, Invalid, Transient
from tests.unit.cluster.scripted_server import Reply, Script, serving, status


def test_an_answer_is_given_whatever_its_status() -> None:
    with serving(Script([status(404, "pods not found")])) as connection:
        answer = connection.request("GET", "/api/v1/pods", query=[("limit", "5")])
    assert (answer.ok, answer.status, answer.failure().message) == (False, 404, "pods not found")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b'{"message": "no"}', "no"), (b"upstream error\n", "upstream error"), (b"", "HTTP status 502")],
)
def test_what_the_server_says_is_told_also_when_a_proxy_said_it(data: bytes, message: str) -> None:
    assert Answer(502, data).failure().message == message


def test_a_token_that_was_rotated_is_read_again() -> None:
    script = Script([status(401), Reply(body={})])
    tokens = iter(["old", "new"])
    with serving(script) as server:
        host = server._accessed().host

        def load() -> Access:
            token = next(tokens)
            return Access(host, urllib3.PoolManager(), lambda: {"authorization": f"Bearer {token}"})

        connection = Connection(load)
        assert connection.request("GET", "/").ok
        connection.close()
    assert script.tokens == ["Bearer old", "Bearer new"]


GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("text", [b"", b"{}", b"pods " * 1_000_000])
def test_a_packed_answer_is_unpacked(text: bytes) -> None:
    with serving(Script([Reply(body=gzip.compress(text), headers=GZIP)])) as connection:
        assert connection.request("GET", "/api/v1/pods").data == text


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"pods" * 1000)[:-9], gzip.compress(b"pods")[:-1] + b"\xff", b"{}", b""],
    ids=["cut", "of another length", "not packed", "empty"],
)
def test_a_packed_answer_that_is_damaged_is_a_failure_that_passes(data: bytes) -> None:
    with serving(Script([Reply(body=data, headers=GZIP)])) as connection, pytest.raises(Transient):
        connection.request("GET", "/api/v1/pods")


def test_credentials_that_stay_refused_are_an_answer() -> None:
    script = Script([status(401, "Unauthorized")])
    with serving(script) as connection:
        assert connection.request("GET", "/").status == 401
    assert len(script.asked) == 2


def test_a_server_that_is_not_there_is_named_in_one_line() -> None:
    connection = Connection(lambda: Access("http://127.0.0.1:1", urllib3.PoolManager(), dict))
    with pytest.raises(Transient) as failed:
        connection.request("GET", "/")
    assert failed.value.message == "http://127.0.0.1:1 does not answer: Connection refused"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_accepts_connections_and_never_answers_is_told_so(scheme: str) -> None:
    """A place in Python's own source (`_ssl.c:989`) stood there."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        connection = Connection(lambda: Access(host, urllib3.PoolManager(), dict), timeout=0.1)
        with pytest.raises(Transient) as failed:
            connection.request("GET", "/")
    assert failed.value.message == f"{host} accepts connections but does not answer"


def test_an_answer_that_is_cut_short_is_a_failure() -> None:
    with serving(Script([Reply(body={"a": 1}, cut=True)])) as connection, pytest.raises(Transient):
        connection.request("GET", "/")


def test_closing_ends_a_stream_that_another_thread_reads() -> None:
    ended: list[str] = []
    with serving(Script([Reply(lines=["{}"], hang=True)])) as connection:
        began = []

        def read() -> None:
            try:
                with connection.stream("/", query=[], silence=60) as lines:
                    assert not isinstance(lines, Answer)
                    for line in lines:
                        began.append(line)
                        closing.start()
            except Transient as error:
                ended.append(error.message)
            else:
                ended.append("")

        closing = Thread(target=connection.close)
        reader = Thread(target=read)
        reader.start()
        reader.join(10)
        assert not reader.is_alive()
        closing.join()
    assert (began, len(ended)) == ([b"{}"], 1)


def test_a_closed_connection_makes_no_calls() -> None:
    with serving(Script([Reply(body={})])) as connection:
        connection.close()
        with pytest.raises(Transient, match="being closed"):
            connection.request("GET", "/")


def test_requests_are_counted_by_method_resource_and_status() -> None:
    counted: list[tuple[str, str, str]] = []
    refused = Access("http://127.0.0.1:1", urllib3.PoolManager(), dict)
    connection = Connection(lambda: refused, count=lambda *call: counted.append(call))
    with pytest.raises(Transient):
        connection.request("GET", "/", resource="pods")
    assert counted == [("GET", "pods", "error")]


def test_a_burst_goes_through_and_then_the_rate_holds() -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    limit = RateLimit(10, 3, clock=lambda: now[0], sleep=sleep)
    for _ in range(6):
        limit.wait()
    assert slept == [0.1, 0.1, 0.1]
    now[0] += 60
    for _ in range(3):
        limit.wait()
    assert len(slept) == 3, "rest earns a burst, and no more than one"
    limit.wait()
    assert slept[3:] == [0.1]


AT_ONCE = """
import sys, threading
from reconciler.cluster.access import kubeconfig_access
from reconciler.model.errors import Invalid
barrier, said = threading.Barrier(8), []
def read():
    barrier.wait()
    try:
        kubeconfig_access(path="/dev/null/absent")
    except Invalid:
        said.append("as it should")
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(len(said) != 8)
"""


def test_several_clusters_are_opened_at_once_by_a_process_that_has_not_loaded_the_package() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    file = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:6443"}}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(json.dumps(config))
    return file


def told(folder: Path, user: dict[str, Any]) -> dict[str, Any]:
    """By a process of its own: in this one a test may have imported the whole package."""
    command = [sys.executable, "-c", SCRIPT, str(kubeconfig(folder, user))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_kubeconfig_is_read_without_the_models(tmp_path: Path) -> None:
    assert told(tmp_path, {"token": "of-mine"}) == {
        "context": "here",
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
    Thread(target=suppressed(connection), daemon=True).start()
    while not (tmp_path / "runs").exists():
        time.sleep(0.01)
    closing = Thread(target=connection.close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()


def suppressed(connection: Connection) -> Callable[[], None]:
    def ask() -> None:
        with suppress(Failure):
            connection.request("GET", "/")

    return ask


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
