"""A bounded server in a thread of its own, from start to close."""

from __future__ import annotations

import threading
from collections.abc import Callable

from reconciler.model.errors import Invalid
from reconciler.web.bounded_server import BoundedServer, parse_address


class Listener:
    """address: `HOST:PORT`, `[IPv6]:PORT` or `:PORT` for all interfaces; port 0 takes a free one. name: of the thread.

    hint: what to do when it cannot listen there, which raises `Invalid`.
    """

    def __init__(
        self, address: str, opened: Callable[[tuple[str, int]], BoundedServer], *, name: str, hint: str
    ) -> None:
        place = parse_address(address)
        try:
            self._server = opened(place)
        except OSError as error:
            raise Invalid(f"cannot listen on {address}: {error.strerror or error}", hint=hint) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name=name, daemon=True
        )

    @property
    def address(self) -> str:
        """Where it listens, with the port it got."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stops at once; answers under way are cut off."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.cut_off(everything=True)
        self._server.server_close()
