"""`headroom` as a process of its own, for tests of what a person would see: words in, two outputs and an exit code out.

Two thirds of what a command takes is importing it. So each is forked from one process that has imported everything, once for all
tests; nothing else is shared. How a process begins (what it imports, an output that is closed) is tried on fresh ones.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

import reconciler

ROOT = Path(__file__).resolve().parents[1]
_IMPORTED_LATE = ("git", "jsonschema_rs", "yaml")
"""Libraries that most commands import, inside of functions."""


def headroom(
    *words: str, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs to its end in this folder, with this environment instead of the tests' own, and with nothing to read."""
    request = {
        "words": words,
        "folder": str(folder),
        "environment": dict(os.environ if environment is None else environment),
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, Path(os.devnull).open("rb") as nothing:
        descriptors = [nothing.fileno(), output.fileno(), errors.fileno()]
        socket.send_fds(_server(), [json.dumps(request).encode() + b"\n"], descriptors)
        status = _line(_server(), b"")
        assert status, "the process that commands are forked from has ended"
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            ["headroom", *words], os.waitstatus_to_exitcode(int(status)), output.read().decode(), errors.read().decode()
        )


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.headroom_command", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        server.wait(timeout=60)

    atexit.register(end)
    return ours


def _line(connection: socket.socket, begun: bytes) -> bytes:
    """Up to the end of the line; less where the other side has ended."""
    while not begun.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            return b""
        begun += more
    return begun


def _serve(connection: socket.socket) -> None:
    """Returns in the server when nobody asks any more. A child ends with its command."""
    from reconciler.__main__ import main  # noqa: PLC0415 - only the server needs any of this

    for name in (*(module.name for module in walk_packages(reconciler.__path__, "reconciler.")), *_IMPORTED_LATE):
        import_module(name)
    gc.freeze()
    while True:
        begun, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        line = _line(connection, begun) if begun else b""
        if not line:
            return
        child = os.fork()
        if not child:
            connection.close()
            asked = json.loads(line)
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.chdir(asked["folder"])
            os.environ.clear()
            os.environ.update(asked["environment"])
            time.tzset()
            try:
                main(asked["words"])
            except SystemExit as left:
                _end(left.code)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(b"%d\n" % os.waitpid(child, 0)[1])


def _end(code: str | int | None) -> NoReturn:
    """As Python ends, but for tidying its own memory away: that would first copy most of the server's."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        _serve(asking)
