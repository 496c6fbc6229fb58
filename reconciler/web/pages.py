"""What can be read over HTTP, each page a function without arguments."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Response:
    """status: the HTTP status code."""

    body: bytes
    content_type: str = TEXT
    status: int = 200


Page = Callable[[], Response]


def check_page(check: Callable[[], tuple[bool, str]]) -> Page:
    """200 with the check's words, or 503 with what is wrong: for probes."""

    def page() -> Response:
        good, words = check()
        return Response(f"{words}\n".encode(), status=200 if good else 503)

    return page


def text_page(exposition: Callable[[], tuple[bytes, str]]) -> Page:
    """Text that comes with its own content type: metrics."""
    return lambda: Response(*exposition())


def json_page(document: Callable[[], Mapping[str, Any] | None]) -> Page:
    """JSON; 503 while there is no document yet."""

    def page() -> Response:
        values = document()
        if values is None:
            return Response(b'{"message": "the daemon has not made a pass yet"}\n', JSON, 503)
        return Response(json.dumps(values, ensure_ascii=False, indent=2).encode() + b"\n", JSON)

    return page


def html_page(version: Callable[[], Hashable | None], drawn: Callable[[], str]) -> Page:
    """HTML, drawn again only when its version is another one than last time; 503 while there is none.

    Drawing takes longer than a probe should wait, and a page that is open in many browsers is asked for often.
    """
    lock = threading.Lock()
    kept: list[tuple[Hashable, bytes]] = []

    def page() -> Response:
        with lock:
            current = version()
            if current is None:
                return Response(b"the daemon has not made a pass yet\n", TEXT, 503)
            if not kept or kept[0][0] != current:
                kept[:] = [(current, drawn().encode())]
            return Response(kept[0][1], HTML)

    return page
