"""Ends the control plane's processes when the test process dies without doing so.

A small child process reads process ids from a pipe. When the pipe closes, whoever held the
other end is gone (killed, crashed, or done), and what is still on its list is ended, each by
its own id. `Process` adds and drops entries; the rest of this module is that child's program.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
from functools import cache


class Lifeline:
    """Our end of the pipe."""

    def __init__(self) -> None:
        """Start the child, in its own session so that Ctrl-C does not reach it."""
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def add(self, pid: int) -> None:
        """End this process if we die."""
        self._send(f"+{pid}")

    def drop(self, pid: int) -> None:
        """This process has ended and its id may go to another."""
        self._send(f"-{pid}")

    def close(self) -> None:
        """Close the pipe: the child ends what is left on its list, then itself."""
        self._child.communicate()

    def _send(self, line: str) -> None:
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.write(f"{line}\n".encode())
            self._child.stdin.flush()


@cache
def lifeline() -> Lifeline:
    """The one of this process."""
    made = Lifeline()
    atexit.register(made.close)
    return made


def _main() -> None:
    pids: set[int] = set()
    for line in sys.stdin:
        if line.startswith("+"):
            pids.add(int(line[1:]))
        else:
            pids.discard(int(line[1:]))
    # By force and at once: nobody is left who would wait for an orderly end.
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _main()
