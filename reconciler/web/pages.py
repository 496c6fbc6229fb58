"""What can be read over HTTP, each page a function without arguments. Made by wiring, served by server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


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
