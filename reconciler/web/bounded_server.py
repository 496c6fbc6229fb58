"""A threaded HTTP server that clients cannot exhaust. One request for each connection.

A slow or silent client costs no more than one thread for a few seconds. Each connection has a deadline, and their number is limited.
If there is no room, the oldest one with an unfinished request is closed. So clients that only connect keep no probe from its answer.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

from reconciler.model.errors import Invalid
from reconciler.model.quantity import whole_number

MOST_CONNECTIONS = 32
MOST_WAITING = 128
"""Connections that the kernel keeps until they are accepted. The sender of any more retries only after a second."""
DEADLINE = 10.0
"""Seconds that a connection may last, from its first byte to the last of the answer."""
SILENCE = 5.0
"""Seconds that a connection may last without a byte in either direction."""


def parse_address(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    number = whole_number(port) if port.isdigit() else None
    if not colon or number is None or number > 65535:  # noqa: PLR2004 - the highest port
        raise Invalid(f"{address!r} is not an address to listen on", hint="write HOST:PORT, such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), number


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """deadline: seconds that a connection may last. connections: open at once; pages: answers under way that may take long."""

    deadline: float
    connections: int
    pages: int


class BoundedServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = MOST_WAITING

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], limits: ServerLimits) -> None:
        self.slots = threading.BoundedSemaphore(limits.pages)
        self._limits = limits
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}
        # Connections whose request is not read yet, in the order of arrival.
        self._asking: dict[socket.socket, None] = {}
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            crowded = len(self._open) >= self._limits.connections
            oldest = next(iter(self._asking), None) if crowded else None
            if oldest is not None:
                del self._asking[oldest], self._open[oldest]
                crowded = False
            if not crowded:
                self._open[request] = monotonic() + self._limits.deadline
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
        self.cut_off(everything=False)

    def cut_off(self, *, everything: bool) -> None:
        """Ends the connections that have lasted too long; their threads notice and close them."""
        now = monotonic()
        with self._lock:
            late = [request for request, deadline in self._open.items() if everything or now >= deadline]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing about a client that disconnected."""
