"""Receives webhooks on a port of their own: what the forge signed is handed on, everything else is refused.

A webhook only hastens what would happen at the next interval. So none is kept, and one that is lost does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import cast

from reconciler.model.quantity import whole_number
from reconciler.web.server import DEADLINE, SILENCE, BoundedServer, Listener, ServerLimits

PATH = "/webhook"
MOST_BYTES = 5 * 2**20
"""Of a body; a push of thousands of commits may have more, and is then found by the next poll."""
_MOST_CONNECTIONS = 16
_MOST_BODIES = 4
"""In memory at once."""

Take = Callable[[Mapping[str, str], bytes], int]
"""(headers in lower case, body) → the HTTP status to answer with."""
_WORDS = {
    200: "nothing to do",
    202: "taken",
    400: "the body is not what its header says",
    401: "the signature is missing or wrong",
}


class WebhookServer(Listener):
    """address: as for `Listener`. take: decides about each; it must answer at once and is called from several threads."""

    def __init__(self, address: str, take: Take, *, deadline: float = DEADLINE) -> None:
        limits = ServerLimits(deadline, _MOST_CONNECTIONS, _MOST_BODIES)
        super().__init__(
            address,
            lambda place: _Server(place, take, limits),
            name="webhooks",
            hint="set webhooks.listen to a free address of this machine, such as 127.0.0.1:8081",
        )


class _Server(BoundedServer):
    def __init__(self, address: tuple[str, int], take: Take, limits: ServerLimits) -> None:
        self.take = take
        super().__init__(address, _Handler, limits)


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENCE
    server_version = "headroom"
    sys_version = ""

    def do_POST(self) -> None:
        server = cast("_Server", self.server)
        if self.path.partition("?")[0] != PATH:
            return self._answer(404, f"webhooks are taken at {PATH}")
        lengths = self.headers.get_all("Content-Length") or ()
        length = (
            whole_number(lengths[0]) if len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit() else None
        )
        if length is None:
            return self._answer(411, "a webhook needs one Content-Length")
        if length > MOST_BYTES:
            return self._answer(413, f"a webhook has at most {MOST_BYTES} bytes")
        if not server.slots.acquire(blocking=False):
            return self._answer(503, "too many webhooks at once")
        try:
            body = self.rfile.read(length)
            if len(body) < length:
                return self._answer(400, _WORDS[400])
            server.has_asked(self.request)
            status = server.take({name.lower(): value for name, value in self.headers.items()}, body)
        finally:
            server.slots.release()
        return self._answer(status, _WORDS.get(status, "refused"))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """For what is no POST, and for what is no HTTP at all: one line instead of the library's page."""
        del explain
        self._answer(405 if code == 501 else code, message or "bad request")  # noqa: PLR2004 - an unknown method

    def _answer(self, status: int, words: str) -> None:
        self.close_connection = True
        content = f"{words}\n".encode()
        self.send_response(status)
        if status == 405:  # noqa: PLR2004 - Method Not Allowed says which are
            self.send_header("Allow", "POST")
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own argument
        """Refused webhooks are counted, not logged: anyone can send as many as they like."""
