"""Which proxy is asked, and how its user signs in: by the forge, the API server, and whatever else is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import urllib3

from reconciler.cluster.access import kubeconfig_access
from reconciler.cluster.connection import Connection
from reconciler.forge.connection import ForgeConnection
from reconciler.model.errors import Failure, Invalid, Transient
from reconciler.network import is_open_to_listeners, opener_to, proxy_of
from tests.kubeconfigs import write_kubeconfig

SIGNED_IN = "Basic dXNAZXI6c2UvY3JldA=="
"""Of the user us@er with the password se/cret."""


class Proxy(BaseHTTPRequestHandler):
    """Notes who asks for what, and lets nobody through to another host."""

    asked: list[tuple[str, str | None]]

    def do_CONNECT(self) -> None:
        self.asked.append((self.path, self.headers["Proxy-Authorization"]))
        self.send_error(407)

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Proxy-Authorization"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address; the environment names it for https, with a user."""
    Proxy.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", f"http://us%40er:se%2Fcret@{address}")
    yield address
    server.shutdown()
    server.server_close()


def kubeconfig(folder: Path, server: str, **more: str) -> Connection:
    file = write_kubeconfig(folder / "kubeconfig", server, **more)
    return Connection(lambda: kubeconfig_access(path=str(file)))


def test_the_proxy_of_a_forge_gets_its_user(proxy: str) -> None:  # noqa: ARG001 - it is in the environment
    with suppress(Failure):
        ForgeConnection("Gitea", "https://git.example/api/v1", "token t", wait=lambda _: None).send("POST", "/user")
    assert Proxy.asked == [("git.example:443", SIGNED_IN)]


@pytest.mark.parametrize("named_in_file", [False, True])
def test_the_proxy_of_an_api_server_gets_its_user(
    tmp_path: Path, proxy: str, monkeypatch: pytest.MonkeyPatch, *, named_in_file: bool
) -> None:
    named = {"proxy-url": f"http://us%40er:se%2Fcret@{proxy}"} if named_in_file else {}
    if named_in_file:
        monkeypatch.delenv("https_proxy")
    with suppress(Failure):
        kubeconfig(tmp_path, "https://cluster.example:6443", **named).request("GET", "/api")
    assert Proxy.asked == [("cluster.example:6443", SIGNED_IN)]


def test_this_machine_is_asked_without_a_proxy(tmp_path: Path, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    address = f"http://{proxy}"
    assert kubeconfig(tmp_path, address).request("GET", "/api").ok
    assert ForgeConnection("Gitea", address, "token t").get("/user") == {}
    with opener_to(address).open(f"{address}/status") as answer:
        assert answer.read() == b"{}"
    assert [path for path, _ in Proxy.asked] == ["/api", "/user", "/status"]


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, ""),
        ({"https_proxy": "proxy.example:3128"}, "http://proxy.example:3128"),
        ({"all_proxy": "http://every.example"}, "http://every.example"),
        ({"https_proxy": "http://proxy.example", "no_proxy": "other.example,.example"}, ""),
        ({"https_proxy": "http://proxy.example", "no_proxy": "git.example:8443"}, "http://proxy.example"),
    ],
)
def test_the_environment_names_the_proxy(
    variables: dict[str, str], found: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del proxy
    monkeypatch.delenv("https_proxy")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of("https://git.example/api") == found


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("https://10.96.0.1:443", False),
        ("https://[fd00::1]:443", False),
        ("https://11.96.0.1:443", True),
        ("https://git.example", True),
    ],
)
def test_networks_are_asked_without_a_proxy(
    address: str, proxy: str, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    del proxy
    monkeypatch.setenv("no_proxy", "10.0.0.0/8, fd00::/8,.svc,not/one")
    assert bool(proxy_of(address)) is asked


def test_a_proxy_that_is_not_of_http_is_told(tmp_path: Path, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", f"socks5://{proxy}")
    with pytest.raises(Invalid, match="proxies of socks5:// are not supported"):
        ForgeConnection("GitHub", "https://git.example", "token t")
    with pytest.raises(Failure, match="proxies of socks5:// are not supported"):
        kubeconfig(tmp_path, "https://cluster.example").request("GET", "/api")


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("http://git.example", True),
        ("https://git.example", False),
        ("http://127.8.0.1:3000", False),
        ("http://[::1]:3000", False),
        ("http://app.localhost", False),
        ("http://10.0.0.1", True),
    ],
)
def test_a_token_is_open_to_listeners_where_it_leaves_the_machine_as_plain_text(url: str, *, is_open: bool) -> None:
    assert is_open_to_listeners(url) is is_open


def test_a_certificate_of_a_strange_authority_is_told_with_what_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_more: object) -> None:
        raise urllib3.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")

    monkeypatch.setattr(urllib3.PoolManager, "request", refuse)
    with pytest.raises(Transient, match="cannot be reached") as failed:
        ForgeConnection("Gitea", "https://127.0.0.1", "token t", wait=lambda _: None).get("/user")
    assert "SSL_CERT_FILE" in failed.value.hint
