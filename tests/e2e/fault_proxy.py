"""A proxy in front of the API server that does harm on request once the nth write is done: the daemon is killed before it hears of it.

The daemon talks plain HTTP to it on loopback; it talks TLS to the API server with the daemon's own token.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.kubeconfigs import cluster_of, token_of, write_kubeconfig

WRITES = {"POST", "PUT", "PATCH", "DELETE"}
_EVENTS = re.compile(r"/events(/|\?|$)")
NOT_FORWARDED = {"transfer-encoding", "connection", "content-length"}

Fault = Callable[[int], "int | None"]
"""Number of a write that is done, from 1 → an HTTP status to answer instead, or None to go on."""


def _is_counted(command: str, path: str) -> bool:
    return command in WRITES and "dryRun=" not in path and _EVENTS.search(path) is None


class FaultProxy:
    """`kubeconfig` is one for the proxy; set `fault` at any time. Neither dry runs nor Events are counted as writes: nobody reads those back."""

    def __init__(self, kubeconfig: Path, work: Path) -> None:
        target = urlsplit(cluster_of(kubeconfig)["server"])
        assert target.hostname is not None
        self._host, self._port = target.hostname, target.port
        self.fault: Fault | None = None
        self.writes = 0
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.serve(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - likewise

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        address = f"http://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = write_kubeconfig(work / "proxied-kubeconfig", address, token_of(kubeconfig))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="fault-proxy", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """Forward one request; the fault speaks once it was done."""
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        number = 0
        if _is_counted(handler.command, handler.path):
            with self._lock:
                self.writes += 1
                number = self.writes
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(self._host, self._port, context=context, timeout=120)
        try:
            headers = {
                key: value for key, value in handler.headers.items() if key.lower() not in {"host", "connection"}
            }
            connection.request(handler.command, handler.path, body=body, headers=headers)
            response = connection.getresponse()
            if number and self._harm(handler, number):
                return
            handler.send_response(response.status)
            for key, value in response.getheaders():
                if key.lower() not in NOT_FORWARDED:
                    handler.send_header(key, value)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            while chunk := response.read1(65536):
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            # one of the two sides has gone, which is what this proxy is for
            handler.close_connection = True
        finally:
            connection.close()

    def _harm(self, handler: BaseHTTPRequestHandler, number: int) -> bool:
        status = self.fault(number) if self.fault is not None else None
        if status is None:
            return False
        failure = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": "fault"}
        text = json.dumps(failure).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            handler.wfile.write(text)
        except OSError:
            handler.close_connection = True
        return True
