"""Passes bytes on between the daemon and an API server, and cuts every connection on request. TLS goes through untouched."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.kubeconfigs import cluster_of, token_of, write_kubeconfig

_PART = 65536


class CuttableConnections:
    """`kubeconfig` is one that leads through here. silent: nothing more is passed on, as by a server that hangs."""

    def __init__(self, kubeconfig: Path, work: Path) -> None:
        cluster = cluster_of(kubeconfig)
        target = urlsplit(cluster.pop("server"))
        self._target = (str(target.hostname), int(target.port or 443))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.silent = False
        address = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kubeconfig = write_kubeconfig(
            work / f"through-{kubeconfig.name}", address, token_of(kubeconfig), **cluster
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="connections", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> int:
        """Ends every connection without a word; returns how many there were."""
        with self._lock:
            there = list(self._open)
        for each in there:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(there) // 2

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), name="connection", daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(self._target) as far:
            pair = {near, far}
            with self._lock:
                self._open |= pair
            back = threading.Thread(target=self._pass_on, args=(far, near), name="answers", daemon=True)
            back.start()
            self._pass_on(near, far)
            back.join()
            with self._lock:
                self._open -= pair

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(_PART):
                if not self.silent:
                    target.sendall(part)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
