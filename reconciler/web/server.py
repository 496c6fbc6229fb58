"""Two small threaded HTTP servers, started and closed by wiring: one for a few pages, one that receives webhooks on a port of its own.

What the forge signed is handed on, every other webhook is refused. A webhook only hastens what would happen at the next interval. So none
is kept, and one that is lost does no harm.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

from reconciler.model.errors import Invalid, Misused
from reconciler.model.quantity import whole_number
from reconciler.model.redaction import redacted_text
from reconciler.web.pages import TEXT, Page, Response, is_known_host, protecting_headers

_MOST_WAITING = 128
"""Connections that the kernel keeps until they are accepted. The sender of any more retries only after a second."""
_SILENCE = 5.0
"""Seconds that a connection may last without a byte in either direction."""


def parse_address(address: str) -> tuple[str, int]:
    """`HOST:PORT` as a pair. Raises `Misused`."""
    host, colon, port = address.rpartition(":")
    number = whole_number(port) if port.isdigit() else None
    if not colon or number is None or number > 65535:  # noqa: PLR2004 - the highest port
        raise Misused(f"{address!r} is not an address to listen on", hint="write HOST:PORT, such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), number


class Listener(ThreadingHTTPServer):
    """A threaded HTTP server, in a thread of its own, that clients cannot exhaust. One request for each connection.

    address: `HOST:PORT`, `[IPv6]:PORT`, or `:PORT` for all interfaces, by IPv4 and IPv6; port 0 takes a free one. handler: of its
    requests. Raises `Invalid` when it cannot listen there; `hint` then says what to do.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = _MOST_WAITING
    name: str
    hint: str
    deadline: float = 10
    """Seconds that a connection may last, from its first byte to the last of the answer."""
    most_connections: int
    """Open at once."""
    most_answers: int
    """Under way at once, of those that may take long, or whose reader may be slow."""

    def __init__(self, address: str, handler: type[_Handler]) -> None:
        self.slots = threading.BoundedSemaphore(self.most_answers)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}
        # Connections whose request is not read yet, in the order of arrival.
        self._asking: dict[socket.socket, None] = {}
        place = parse_address(address)
        is_ipv6 = ":" in place[0] or (not place[0] and socket.has_dualstack_ipv6())
        self.address_family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        try:
            super().__init__(place, handler)
        except OSError as error:
            raise Invalid(f"cannot listen on {address}: {error.strerror or error}", hint=self.hint) from error
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.1}, name=self.name, daemon=True
        )

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6 and not self.server_address[0]:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # a machine may have another default
        super().server_bind()

    @property
    def address(self) -> str:
        """Where it listens, with the port it got."""
        host, port = self.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stops at once; answers under way are cut off."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self._cut_off(everything=True)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            crowded = len(self._open) >= self.most_connections
            oldest = next(iter(self._asking), None) if crowded else None
            if oldest is not None:
                del self._asking[oldest], self._open[oldest]
                crowded = False
            if not crowded:
                self._open[request] = monotonic() + self.deadline
                self._asking[request] = None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        if crowded:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def has_asked(self, request: Any) -> None:
        """Reports that its request is read: it is answered now, and not closed for others."""
        with self._lock:
            self._asking.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
            self._asking.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by serve_forever ten times a second."""
        self._cut_off(everything=False)

    def _cut_off(self, *, everything: bool) -> None:
        """Ends the connections that have lasted too long; their threads notice and close them."""
        now = monotonic()
        with self._lock:
            late = [request for request, deadline in self._open.items() if everything or now >= deadline]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing about a client that disconnected."""


def _response(page: Page) -> Response:
    try:
        return page()
    except Exception as error:  # noqa: BLE001 - a page that fails must not take the server with it
        return Response(redacted_text(f"internal error: {type(error).__name__}: {error}\n").encode(), status=500)


class _Handler(BaseHTTPRequestHandler):
    """allowed: the methods that it knows."""

    timeout = _SILENCE
    server_version = "headroom"
    sys_version = ""
    allowed: str
    server: Listener

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """For another method, and for what is no HTTP at all: one line instead of the library's page."""
        del explain
        status = 405 if code == 501 else code  # noqa: PLR2004 - the library takes an unknown method for unfinished work
        self.say(status, message or "bad request")

    def say(self, status: int, words: str) -> None:
        """Answers with one line, whatever is left of the request."""
        self.close_connection = True
        self.answer(Response(f"{words}\n".encode(), TEXT, status))

    def answer(self, response: Response) -> None:
        if response.tag and response.tag in self.headers.get("If-None-Match", ""):
            response = Response(b"", response.content_type, 304, response.tag)
        self.send_response(response.status)
        if response.status == 405:  # noqa: PLR2004 - Method Not Allowed says which are
            self.send_header("Allow", self.allowed)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        if response.tag:
            self.send_header("ETag", response.tag)
        self.send_header("Cache-Control", "no-store")
        for name, value in protecting_headers(response).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own argument
        """Nothing is logged: probes come every few seconds, and anyone can send as many webhooks as they like."""


class _PageHandler(_Handler):
    allowed = "GET, HEAD"
    server: PageServer

    def do_GET(self) -> None:
        path, site = self.path.partition("?")[0], self.server
        site.has_asked(self.request)
        strange = [host for host in self.headers.get_all("Host", []) if not is_known_host(host, site.hosts)]
        if strange:
            self.say(
                421,
                f"this is headroom, which is not known as {strange[0][:100]!a}: ask by IP address, as localhost, or by the name of a"
                " Service (NAME.NAMESPACE.svc). To allow another name, add it to the setting allowedHosts.",
            )
        elif path in site.probes:
            self.answer(_response(site.probes[path]))
        elif not site.slots.acquire(blocking=False):
            self.say(503, "too many pages are asked for at once")
        else:
            try:
                self.answer(_response(lambda: site.page(path)))
            finally:
                site.slots.release()

    do_HEAD = do_GET  # noqa: N815 - the name is the standard library's


class PageServer(Listener):
    """probes: pages that answer at once, whatever else goes on. find: gives the page of a path that is none of `pages`, such as a
    buffer's, or None. hosts: more names that a request may be for. Pages are called from several threads at once."""

    name = "web"
    hint = "set `listen`, or HEADROOM_LISTEN, to a free address of this machine, such as 127.0.0.1:0"
    most_connections, most_answers = 32, 8

    def __init__(
        self,
        address: str,
        pages: Mapping[str, Page],
        *,
        probes: Mapping[str, Page] | None = None,
        find: Callable[[str], Page | None] = lambda _path: None,
        hosts: Collection[str] = (),
    ) -> None:
        self.pages, self.probes, self.find, self.hosts = dict(pages), dict(probes or {}), find, frozenset(hosts)
        super().__init__(address, _PageHandler)

    def page(self, path: str) -> Response:
        """The page of a path; 404 for a path without one."""
        page = self.pages.get(path) or self.find(path)
        if page is None:
            more = ", and those of objects that / links to" if "/" in self.pages else ""
            words = f"the pages are {', '.join(sorted({*self.pages, *self.probes}))}{more}\n"
            return Response(words.encode(), status=404)
        return page()


PATH = "/webhook"
MOST_BYTES = 5 * 2**20
"""Of a body; a push of thousands of commits may have more, and is then found by the next poll."""
Take = Callable[[Mapping[str, str], bytes], int]
"""(headers in lower case, body) → the HTTP status to answer with."""
_WORDS = {
    200: "nothing to do",
    202: "taken",
    400: "the body is not what its header says",
    401: "the signature is missing or wrong",
}


class _WebhookHandler(_Handler):
    allowed = "POST"
    server: WebhookServer

    def do_POST(self) -> None:
        if self.path.partition("?")[0] != PATH:
            return self.say(404, f"webhooks are taken at {PATH}")
        lengths = self.headers.get_all("Content-Length") or ()
        length = (
            whole_number(lengths[0]) if len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit() else None
        )
        if length is None:
            return self.say(411, "a webhook needs one Content-Length")
        if length > MOST_BYTES:
            return self.say(413, f"a webhook has at most {MOST_BYTES} bytes")
        if not self.server.slots.acquire(blocking=False):
            return self.say(503, "too many webhooks at once")
        try:
            body = self.rfile.read(length)
            if len(body) < length:
                return self.say(400, _WORDS[400])
            self.server.has_asked(self.request)
            status = self.server.take({name.lower(): value for name, value in self.headers.items()}, body)
        finally:
            self.server.slots.release()
        return self.say(status, _WORDS.get(status, "refused"))


class WebhookServer(Listener):
    """take: decides about each webhook; it must answer at once and is called from several threads."""

    name = "webhooks"
    hint = "set webhooks.listen to a free address of this machine, such as 127.0.0.1:8081"
    most_connections, most_answers = 16, 4  # whose bodies are in memory

    def __init__(self, address: str, take: Take) -> None:
        self.take = take
        super().__init__(address, _WebhookHandler)
