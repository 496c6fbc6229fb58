"""The daemon's pages over real connections."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

import pytest

from reconciler.model.errors import Invalid, Misused
from reconciler.web.pages import JSON, Page, Response, check_page, kept_page, named_hosts, text_page
from reconciler.web.server import PageServer
from tests.controlplane.waiting import eventually

PATIENCE = 120.0


@contextmanager
def serving(pages: Mapping[str, Page], *, limits: Mapping[str, float] | None = None, **more: Any) -> Iterator[str]:
    """limits: attributes of a server, instead of its own."""
    server = type("Limited", (PageServer,), dict(limits or {}))("127.0.0.1:0", pages, **more)
    server.start()
    try:
        yield server.address
    finally:
        server.close()


def get(address: str, path: str, method: str = "GET", *, known: str = "") -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={"If-None-Match": known} if known else {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def hung_up(client: socket.socket) -> bool:
    """Whether the server ends the connection without an answer (a reset where it had not read everything)."""
    try:
        return client.recv(4096) == b""
    except ConnectionResetError:
        return True


def good() -> tuple[bool, str]:
    return True, "ok"


def test_a_check_is_200_while_it_is_good_and_503_with_the_reason_when_not() -> None:
    state = [(True, "ok")]
    with serving({"/healthz": check_page(lambda: state[0])}) as address:
        assert get(address, "/healthz")[::2] == (200, "ok\n")
        state[0] = (False, "a pass has been under way for 1800 s")
        assert get(address, "/healthz")[::2] == (503, "a pass has been under way for 1800 s\n")


def test_metrics_keep_their_own_content_type() -> None:
    with serving({"/metrics": text_page(lambda: (b"up 1\n", "text/plain; version=0.0.4"))}) as address:
        status, headers, body = get(address, "/metrics")
    assert (status, headers["Content-Type"], body) == (200, "text/plain; version=0.0.4", "up 1\n")


def test_a_page_is_drawn_again_only_when_there_is_something_new() -> None:
    versions: list[int] = []
    drawn: list[int] = []

    def draw() -> str:
        drawn.append(versions[-1])
        return f"<p>ünd {versions[-1]}</p>"

    with serving({"/": kept_page(lambda: versions[-1] if versions else None, draw)}) as address:
        assert get(address, "/")[::2] == (503, "the daemon has not made a pass yet\n")
        versions.append(1)
        status, headers, body = get(address, "/")
        assert (status, headers["Content-Type"], body) == (200, "text/html; charset=utf-8", "<p>ünd 1</p>")
        get(address, "/")
        versions.append(2)
        assert get(address, "/")[2] == "<p>ünd 2</p>"
    assert drawn == [1, 2]


def test_without_a_pass_json_is_json() -> None:
    with serving({"/status": kept_page(lambda: None, lambda: "{}", JSON)}) as address:
        status, headers, body = get(address, "/status")
    assert (status, headers["Content-Type"]) == (503, "application/json")
    assert json.loads(body) == {"message": "the daemon has not made a pass yet"}


def test_who_has_a_page_already_is_not_sent_it_again() -> None:
    versions = [1]
    with serving({"/": kept_page(lambda: versions[-1], lambda: f"<p>{versions[-1]}</p>")}) as address:
        tag = get(address, "/")[1]["ETag"]
        status, headers, body = get(address, "/", known=tag)
        assert (status, headers["ETag"], body) == (304, tag, "")
        versions.append(2)
        assert get(address, "/", known=tag)[::2] == (200, "<p>2</p>")


def test_a_page_that_is_not_listed_is_looked_for() -> None:
    found = {"/CapacityBuffer/shop/web": lambda: Response(b"web")}
    with serving({}, find=found.get) as address:
        assert get(address, "/CapacityBuffer/shop/web")[::2] == (200, "web")
        assert get(address, "/CapacityBuffer/shop/api")[0] == 404
    with serving({"/": text_page(lambda: (b"", "text/plain"))}, find=found.get) as address:
        assert get(address, "/api")[2] == "the pages are /, and those of objects that / links to\n"


def test_a_query_does_not_change_the_page() -> None:
    with serving({"/healthz": check_page(good)}) as address:
        assert get(address, "/healthz?verbose")[0] == 200


@pytest.mark.parametrize("path", ["/", "/nothing", "/healthz/../etc/passwd"])
def test_any_other_path_says_which_pages_there_are(path: str) -> None:
    with serving({"/healthz": check_page(good), "/metrics": text_page(lambda: (b"", "text/plain"))}) as address:
        assert get(address, path)[::2] == (404, "the pages are /healthz, /metrics\n")


def test_head_has_the_length_and_no_body() -> None:
    with serving({"/healthz": check_page(good)}) as address:
        status, headers, body = get(address, "/healthz", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "3", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(method: str) -> None:
    with serving({"/healthz": check_page(good)}) as address:
        status, headers, _ = get(address, "/healthz", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_page_that_fails_is_500_without_a_trace_and_the_next_is_served() -> None:
    def broken() -> Response:
        raise ValueError("a defect at https://me:between-us@git.example/x")

    with serving({"/status": broken, "/healthz": check_page(good)}) as address:
        assert get(address, "/status")[::2] == (
            500,
            "internal error: ValueError: a defect at https://***@git.example/x\n",
        )
        assert get(address, "/healthz")[0] == 200


def test_what_is_no_http_is_refused() -> None:
    with serving({"/healthz": check_page(good)}) as address, connected(address) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert b"Bad request" in client.recv(4096)


def test_a_client_that_drips_is_cut_off_at_its_deadline() -> None:
    with serving({"/healthz": check_page(good)}, limits={"deadline": 0.2}) as address, connected(address) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        client.settimeout(0.02)
        assert any(drips(client) for _ in range(500))


def drips(client: socket.socket) -> bool:
    """Sends one more byte; whether the server had hung up."""
    try:
        return hung_up(client)
    except TimeoutError:
        try:
            client.sendall(b"x")
        except (BrokenPipeError, ConnectionResetError):
            return True
        return False


def test_where_there_is_no_room_the_oldest_that_has_not_asked_makes_way() -> None:
    with serving({"/healthz": check_page(good)}, limits={"most_connections": 1, "deadline": PATIENCE}) as address:
        with connected(address) as first, connected(address) as second:
            assert hung_up(first)
            second.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert b"200" in second.recv(4096)
        eventually(lambda: get(address, "/healthz")[0] == 200, within=PATIENCE, what="a probe is answered")


def test_sixty_half_open_requests_keep_no_probe_from_its_answer() -> None:
    with serving({}, probes={"/healthz": check_page(good)}, limits={"deadline": PATIENCE}) as address:
        half_open = [connected(address) for _ in range(60)]
        for client in half_open:
            with suppress(OSError):
                client.sendall(b"GET /heal")
        assert [get(address, "/healthz")[0] for _ in range(40)] == [200] * 40
        for client in half_open:
            client.close()


def test_connections_that_come_at_once_are_kept_until_they_are_taken() -> None:
    """What a listener does not keep is tried again by its sender after a second, which is when a probe gives up."""
    server = PageServer("127.0.0.1:0", {}, probes={"/healthz": check_page(good)})
    waiting = [connected(server.address) for _ in range(60)]
    server.start()
    try:
        assert get(server.address, "/healthz")[0] == 200
    finally:
        for client in waiting:
            client.close()
        server.close()


def test_pages_that_take_long_keep_no_probe_from_its_answer() -> None:
    drawn, under_way = threading.Event(), threading.Semaphore(0)

    def slow() -> Response:
        under_way.release()
        assert drawn.wait(PATIENCE)
        return Response(b"")

    with serving(
        {"/capacity": slow}, probes={"/healthz": check_page(good)}, limits={"most_connections": 4, "most_answers": 2}
    ) as address:
        readers = [threading.Thread(target=get, args=(address, "/capacity")) for _ in range(2)]
        for reader in readers:
            reader.start()
            assert under_way.acquire(timeout=PATIENCE)
        assert get(address, "/capacity")[0] == 503
        assert get(address, "/healthz")[0] == 200
        drawn.set()
        for reader in readers:
            reader.join()
        eventually(lambda: get(address, "/capacity")[0] == 200, within=PATIENCE, what="the page is drawn")


def test_closing_frees_the_port_at_once_even_with_clients_under_way() -> None:
    server = PageServer("127.0.0.1:0", {"/healthz": check_page(good)})
    server.start()
    with connected(server.address) as client:
        client.sendall(b"GET /heal")
        server.close()
        assert hung_up(client)
    again = PageServer(server.address, {})
    again.close()


def test_an_address_in_use_is_said_with_what_to_do() -> None:
    with serving({}) as address, pytest.raises(Invalid) as refused:
        PageServer(address, {})
    assert f"cannot listen on {address}" in refused.value.message
    assert "listen" in refused.value.hint


@pytest.mark.parametrize("address", ["8080", "localhost", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(Invalid, match="not an address to listen on"):
        PageServer(address, {})


@pytest.mark.parametrize(
    ("address", "clients"),
    [(":0", ["127.0.0.1", "::1"]), ("[::]:0", ["::1"]), ("[::1]:0", ["::1"]), ("0.0.0.0:0", ["127.0.0.1"])],
)
def test_all_interfaces_and_ipv6_can_be_listened_on(address: str, clients: list[str]) -> None:
    server = PageServer(address, {})
    port = int(server.address.rpartition(":")[2])
    for client in clients:
        socket.create_connection((client, port), timeout=5).close()
    server.close()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.0.0.1:8080", "10.1.2.3:8080", "[::1]:8080", "[fd00::1]", "localhost", "LOCALHOST:8080", "localhost.",
        "headroom", "headroom-7d4b9-x2x7:8080", "headroom.headroom-system.svc:8080", "headroom.headroom-system.svc.cluster.local.",
        "capacity.example.com", "Capacity.Example.com:443",
    ],
)  # fmt: skip
def test_the_names_of_this_server_are_answered(host: str) -> None:
    with serving({}, probes={"/healthz": check_page(good)}, hosts={"capacity.example.com"}) as address:
        assert asked_as(address, host).startswith(b"HTTP/1.0 200")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "headroom.dev", "svc.evil.example",
        "evil.svc.cluster.local.example", "127.0.0.1@evil.example", "[::1].evil.example", "a.b/", "", "evil.example,localhost", "0x7f.1",
        "sub.capacity.example.com", "[127.0.0.1", "[x]", "é.example",
    ],
)  # fmt: skip
def test_dns_rebinding_is_refused(host: str) -> None:
    """A stranger's name that leads to this server: the browser sends that name, and gets nothing of the page."""
    pages = {"/status": lambda: Response(b"secret")}
    with serving(pages, probes={"/healthz": check_page(good)}, hosts={"capacity.example.com"}) as address:
        for path in ("/status", "/healthz", "/"):
            answer = asked_as(address, host, path)
            assert answer.startswith(b"HTTP/1.0 421")
            assert b"allowedHosts" in answer
            assert b"secret" not in answer


def test_a_second_host_header_hides_no_first() -> None:
    with serving({}, probes={"/healthz": check_page(good)}) as address:
        assert asked_as(address, "localhost\r\nHost: evil.example").startswith(b"HTTP/1.0 421")
        assert asked_as(address, "evil.example\r\nHost: localhost").startswith(b"HTTP/1.0 421")


def asked_as(address: str, host: str, path: str = "/healthz") -> bytes:
    with connected(address) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    return answer


def test_a_probe_of_http_1_0_needs_no_host() -> None:
    with serving({}, probes={"/healthz": check_page(good)}) as address, connected(address) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.0 200")


def test_a_page_runs_no_script_and_stands_in_no_frame() -> None:
    styled = "<style>a { color: red; }</style><svg><style>\nb > c {}\n</style></svg><script>1</script>"
    pages = {"/page": kept_page(lambda: 1, lambda: styled), "/text": lambda: Response(b"<style>d</style>")}
    with serving(pages) as address:
        _, page, _ = get(address, "/page")
        _, text, _ = get(address, "/text")
        _, missing, _ = get(address, "/nothing")
    for headers in (page, text, missing):
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "script-src" not in headers["Content-Security-Policy"]
    allowed = page["Content-Security-Policy"].partition("style-src ")[2].split()
    hashes = (sha256(style).digest() for style in (b"a { color: red; }", b"\nb > c {}\n"))
    assert allowed == [f"'sha256-{b64encode(digest).decode()}'" for digest in hashes]
    assert "style-src" not in text["Content-Security-Policy"]


def test_a_page_runs_its_own_script_and_no_other_that_got_into_it() -> None:
    own = "ask();"
    drawn = f"<script>{own}</script><script>steal();</script>"
    with serving({"/": kept_page(lambda: 1, lambda: drawn, script=own)}) as address:
        policy = get(address, "/")[1]["Content-Security-Policy"]
    digest = b64encode(sha256(own.encode()).digest()).decode()
    assert policy.endswith(f"; script-src 'sha256-{digest}'; connect-src 'self'")


@pytest.mark.parametrize("setting", ["http://a.example", "a.example:80", "a b", "*.example.com"])
def test_a_setting_that_names_no_host_is_refused(setting: str) -> None:
    with pytest.raises(Misused, match="allowedHosts has"):
        named_hosts(setting)
