"""`headroom` as a process of its own, for tests of what a person would see: words in, two outputs and an exit code out.

Two thirds of what a command takes is importing it. So each is forked from one process that has imported everything, once for all
tests; nothing else is shared. How a process begins (what it imports, an output that is closed) is tried on fresh ones.

Scripts find such a command on the path that `path_with_headroom` makes. One runs at a time.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shutil
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
from typing import Any, NoReturn

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
    server, _ = _server()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, Path(os.devnull).open("rb") as nothing:
        descriptors = [nothing.fileno(), output.fileno(), errors.fileno()]
        socket.send_fds(server, [json.dumps(request).encode() + b"\n"], descriptors)
        status = _line(server, b"")
        assert status, "the process that commands are forked from has ended"
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            ["headroom", *words], os.waitstatus_to_exitcode(int(status)), output.read().decode(), errors.read().decode()
        )


def headroom_at(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As on a machine of its own, whose home the folder is: it has no cluster but that of a file `kubeconfig` there."""
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig")}
    return headroom(*words, folder=folder, environment={**own, **variables})


def path_with_headroom() -> str:
    """A value of PATH for scripts: `headroom` is first on it, and then whatever else is installed."""
    _, folder = _server()
    return f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"


_ASKS = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({address!r})
    request = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(asking, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    sys.exit(os.waitstatus_to_exitcode(int(asking.makefile().readline())))
"""


@cache
def _server() -> tuple[socket.socket, Path]:
    """A connection to the server, and a folder with a `headroom` that asks it."""
    folder = Path(tempfile.mkdtemp())
    ours, theirs = socket.socketpair()
    with theirs, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "asked"))
        listening.listen()
        descriptors = [theirs.fileno(), listening.fileno()]
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.headroom_command", *map(str, descriptors)],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=descriptors,
        )
    command = folder / "headroom"
    command.write_text(_ASKS.format(python=sys.executable, address=str(folder / "asked")))
    command.chmod(0o700)

    def end() -> None:
        ours.close()
        server.wait(timeout=60)
        shutil.rmtree(folder)

    atexit.register(end)
    return ours, folder


def _line(connection: socket.socket, begun: bytes) -> bytes:
    """Up to the end of the line; less where the other side has ended."""
    while not begun.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            return b""
        begun += more
    return begun


def _serve(tests: socket.socket, scripts: socket.socket) -> None:
    """Returns in the server when the tests ask no more. A child ends with its command."""
    for name in (*(module.name for module in walk_packages(reconciler.__path__, "reconciler.")), *_IMPORTED_LATE):
        import_module(name)
    gc.freeze()
    while True:
        ready, _, _ = select.select([tests, scripts], [], [])
        if tests in ready and not _run(tests):
            return
        if scripts in ready:
            with scripts.accept()[0] as script:
                _run(script)


def _run(connection: socket.socket) -> bool:
    """Runs the command that is asked for, and answers with its status; nothing where nobody asks any more."""
    begun, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    line = _line(connection, begun) if begun else b""
    if not line:
        return False
    child = os.fork()
    if not child:
        connection.close()
        _become(json.loads(line), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(b"%d\n" % os.waitpid(child, 0)[1])
    return True


def _become(asked: dict[str, Any], descriptors: list[int]) -> NoReturn:
    from reconciler.__main__ import main

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
    raise AssertionError("main never returns")


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
    with socket.socket(fileno=int(sys.argv[1])) as asking, socket.socket(fileno=int(sys.argv[2])) as listening:
        _serve(asking, listening)
