"""A small threaded HTTP server for a few pages. Started and closed by wiring.

It answers GET and HEAD and nothing else. Pages other than probes are answered a few at a time, and the rest of them is
turned away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from reconciler.web.bounded_server import DEADLINE, MOST_CONNECTIONS, SILENCE, BoundedServer, ServerLimits
from reconciler.web.listener import Listener
from reconciler.web.pages import TEXT, Page, Response, is_known_host, protecting_headers

MOST_PAGES = 8
"""Answers under way of pages that may take long, or whose reader may be slow."""


class PageServer(Listener):
    """address: as for `Listener`.

    probes: pages that answer at once, whatever else goes on. find: gives the page of a path that is none of `pages`, such as a buffer's,
    or None. hosts: more names that a request may be for. Raises `Invalid` when it cannot listen there. Pages are called from several threads at once.
    """

    def __init__(
        self,
        address: str,
        pages: Mapping[str, Page],
        *,
        probes: Mapping[str, Page] | None = None,
        find: Callable[[str], Page | None] = lambda _path: None,
        hosts: Collection[str] = (),
        deadline: float = DEADLINE,
        most_connections: int = MOST_CONNECTIONS,
        most_pages: int = MOST_PAGES,
    ) -> None:
        limits = ServerLimits(deadline, most_connections, most_pages)
        super().__init__(
            address,
            lambda place: _Server(
                place, limits, pages=dict(pages), probes=dict(probes or {}), find=find, hosts=frozenset(hosts)
            ),
            name="web",
            hint="set `listen`, or HEADROOM_LISTEN, to a free address of this machine, such as 127.0.0.1:0",
        )


class _Server(BoundedServer):
    def __init__(
        self,
        address: tuple[str, int],
        limits: ServerLimits,
        *,
        pages: dict[str, Page],
        probes: dict[str, Page],
        find: Callable[[str], Page | None],
        hosts: frozenset[str],
    ) -> None:
        self.hosts = hosts
        self.pages = pages
        self.probes = probes
        self.find = find
        super().__init__(address, _Handler, limits)


def _page(server: _Server, path: str) -> Response:
    page = server.pages.get(path) or server.find(path)
    if page is None:
        words = "the pages are " + ", ".join(sorted({*server.pages, *server.probes})) + "\n"
        return Response(words.encode(), status=404)
    return page()


def _response(page: Page) -> Response:
    try:
        return page()
    except Exception as error:  # noqa: BLE001 - a page that fails must not take the server with it
        return Response(f"internal error: {type(error).__name__}: {error}\n".encode(), status=500)


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENCE
    server_version = "headroom"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        server = cast("_Server", self.server)
        server.has_asked(self.request)
        strange = [host for host in self.headers.get_all("Host", []) if not is_known_host(host, server.hosts)]
        if strange:
            words = (
                f"this is headroom, which is not known as {strange[0][:100]!a}: ask by IP address, as localhost, or by the name of a"
                " Service (NAME.NAMESPACE.svc). To allow another name, add it to the setting allowedHosts.\n"
            )
            self._answer(Response(words.encode(), status=421))
        elif path in server.probes:
            self._answer(_response(server.probes[path]))
        elif not server.slots.acquire(blocking=False):
            self._answer(Response(b"too many pages are asked for at once\n", status=503))
        else:
            try:
                self._answer(_response(lambda: _page(server, path)))
            finally:
                server.slots.release()

    do_HEAD = do_GET  # noqa: N815 - the name is the standard library's

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """For what is no GET or HEAD, and for what is no HTTP at all: one line instead of the library's page."""
        del explain
        status = 405 if code == 501 else code  # noqa: PLR2004 - the library takes an unknown method for unfinished work
        self.close_connection = True
        self._answer(Response(f"{message or 'bad request'}\n".encode(), TEXT, status))

    def _answer(self, response: Response) -> None:
        if response.tag and response.tag in self.headers.get("If-None-Match", ""):
            response = Response(b"", response.content_type, 304, response.tag)
        self.send_response(response.status)
        if response.status == 405:  # noqa: PLR2004 - Method Not Allowed says which are
            self.send_header("Allow", "GET, HEAD")
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
        """Probes come every few seconds: nothing is logged."""
