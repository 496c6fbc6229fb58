"""The receiver of webhooks: small bodies, few at once, and nothing but POST."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping

import pytest

from reconciler.model.errors import Invalid
from reconciler.web.server import MOST_BYTES, WebhookServer


class Taken:
    """Every webhook that came through."""

    def __init__(self) -> None:
        self.all: list[tuple[str, bytes]] = []

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        self.all.append((headers.get("x-event", ""), body))
        return 202 if body != b"bad" else 401


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def server(taken: Taken) -> Iterator[WebhookServer]:
    made = WebhookServer("127.0.0.1:0", taken.take)
    made.deadline = 2.0
    made.start()
    yield made
    made.close()


def ask(server: WebhookServer, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    connection = http.client.HTTPConnection(server.address, timeout=120)
    try:
        connection.request(method, path, body, {"X-Event": "push", **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def raw(server: WebhookServer, text: bytes) -> bytes:
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(text)
        return connection.recv(4096)


def test_a_webhook_is_handed_on_with_its_headers(server: WebhookServer, taken: Taken) -> None:
    assert ask(server, "POST", "/webhook?from=gitea", b"{}") == 202
    assert ask(server, "POST", "/webhook", b"bad") == 401
    assert taken.all == [("push", b"{}"), ("push", b"bad")]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/webhook", 405), ("PUT", "/webhook", 405), ("POST", "/metrics", 404)]
)
def test_anything_else_is_refused(server: WebhookServer, taken: Taken, method: str, path: str, status: int) -> None:
    assert ask(server, method, path) == status
    assert taken.all == []


def test_a_body_that_is_too_large_or_of_no_length_is_not_read(server: WebhookServer, taken: Taken) -> None:
    announced = f"POST /webhook HTTP/1.1\r\nContent-Length: {MOST_BYTES + 1}\r\n\r\n".encode()
    assert b" 413 " in raw(server, announced)
    assert b" 411 " in raw(server, b"POST /webhook HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    for odd in (b"-1", b"9" * 5000, b"x", b"1\r\nContent-Length: 2", "٣".encode()):
        assert b" 411 " in raw(server, b"POST /webhook HTTP/1.1\r\nContent-Length: " + odd + b"\r\n\r\n")
    assert taken.all == []


def test_a_body_that_never_comes_costs_a_connection_for_a_while(server: WebhookServer, taken: Taken) -> None:
    assert b" 202 " not in raw(server, b"POST /webhook HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
    assert taken.all == []
    assert ask(server, "POST", "/webhook", b"{}") == 202


def test_an_address_that_is_taken_is_told(server: WebhookServer, taken: Taken) -> None:
    with pytest.raises(Invalid, match="cannot listen on"):
        WebhookServer(server.address, taken.take)
