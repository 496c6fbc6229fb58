"""Git servers that tests can break: smart HTTP with sign-in and faults, and the git protocol; both with the real git behind."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class GitHttpServer:
    """Serves the repositories of a folder through `git http-backend`.

    token: what must be the password, None for open doors; fault: "" or one of 500, 403, hang, truncate; requests: path
    and query of everything that was asked; modern False: only the first version of git's protocol, in which no server gives
    single objects; arrived: set when a request hangs, which lasts until `release`.
    """

    def __init__(self, folder: Path) -> None:
        self.token: str | None = None
        self.fault = ""
        self.modern = True
        self.requests: list[str] = []
        self.arrived = threading.Event()
        self.released = threading.Event()
        self._folder = folder
        self._port = 0
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/capacity.git"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listens, after a stop at the same port again."""
        self._server = _Server(self._port, self, self._folder)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.release()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def release(self) -> None:
        """Lets requests that hang go."""
        self.released.set()

    def heard(self) -> list[str]:
        """What was asked since the last call."""
        requests, self.requests = self.requests, []
        return requests


class _Server(ThreadingHTTPServer):
    def __init__(self, port: int, state: GitHttpServer, folder: Path) -> None:
        self.state = state
        self.folder = folder
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _answer(self, body: bytes) -> None:
        self.server.state.requests.append(self.path.removeprefix("/capacity.git/"))
        if self.server.state.fault == "hang":
            self.server.state.arrived.set()
            self.server.state.released.wait()
            return self._send(503, [], b"")
        if self.server.state.fault.isdigit():
            return self._send(int(self.server.state.fault), [], b"out of order")
        if self.server.state.token is not None and self._password() != self.server.state.token:
            return self._send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
        status, headers, content = self._backend(body)
        if self.server.state.fault == "truncate" and self.command == "POST" and b"packfile" in content:
            self._send(status, headers, content, keep=len(content) // 2)
        else:
            self._send(status, headers, content)
        return None

    def _password(self) -> str:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        return base64.b64decode(value).decode().partition(":")[2] if kind == "Basic" else ""

    def _backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        parts = urlsplit(self.path)
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", "") if self.server.state.modern else "",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [
            (key, value.strip()) for key, _, value in (line.partition(":") for line in head.decode().split("\r\n"))
        ]
        status = next((int(value.split()[0]) for key, value in headers if key == "Status"), 200)
        return status, [(key, value) for key, value in headers if key != "Status"], content

    def _send(self, status: int, headers: list[tuple[str, str]], content: bytes, keep: int | None = None) -> None:
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content[:keep])
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is the base class's
        """Nothing: tests are quiet."""
