"""Connections to an API server."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
from threading import Thread

import pytest
import urllib3

from reconciler.cluster.access import Access
from reconciler.cluster.connection import Answer, Connection, RateLimit
from reconciler.model.errors import Transient
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
