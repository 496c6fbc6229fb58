"""An HTTP server that answers as a test tells it to: for what a real API server does only on a bad day."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import urllib3

from reconciler.cluster.access import Access
from reconciler.cluster.connection import Connection

Headers = dict[str, str]


@dataclass(frozen=True)
class Reply:
    """body: JSON, or bytes as they are, or lines of a stream; hang: nothing more comes after the body or the lines, until the server ends."""

    status: int = 200
    body: Any = None
    lines: Iterable[Any] | None = None
    hang: bool = False
    cut: bool = False
    headers: Headers = field(default_factory=dict)


@dataclass
class Script:
    """Replies in turn to requests whose path and query are noted; the last one is repeated."""

    replies: list[Reply]
    asked: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    heard: Callable[[], None] = lambda: None

    def next(self, path: str, token: str) -> Reply:
        with self.lock:
            self.asked.append(path)
            self.tokens.append(token)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.heard()
        return reply


def status(code: int, message: str = "") -> Reply:
    body = {"kind": "Status", "message": message, "code": code}
    return Reply(code, body)


def listing(*items: Any, version: str = "10", token: str = "") -> Reply:
    return Reply(body={"kind": "List", "metadata": {"resourceVersion": version, "continue": token}, "items": items})


def event(kind: str, item: Any) -> dict[str, Any]:
    return {"type": kind, "object": item}


@contextmanager
def serving(script: Script, *, token: str = "t") -> Iterator[Connection]:
    """A connection to a server that follows the script."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            reply = script.next(self.path, self.headers.get("authorization", ""))
            (self.send_response_only if "Date" in reply.headers else self.send_response)(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.lines is None:
                data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_header("Content-Length", str(len(data) + (10 if reply.cut else 0)))
                self.end_headers()
                self.wfile.write(data)
                if reply.hang:
                    script.ended.wait(30)
                self.close_connection = reply.cut
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in reply.lines:
                data = (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"
                # Split, so that a line may come in parts.
                for part in (data[:7], data[7:]):
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
            if reply.hang:
                script.ended.wait(30)
            if reply.cut:
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")

        do_PATCH = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names are the standard library's

        def log_message(self, *_arguments: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    host = f"http://127.0.0.1:{server.server_port}"
    pool = urllib3.PoolManager(maxsize=8)
    connection = Connection(lambda: Access(host, pool, lambda: {"authorization": token}), timeout=5)
    try:
        yield connection
    finally:
        connection.close()
        script.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def query_of(path: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(path).query))
