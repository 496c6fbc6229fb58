"""Ends the control plane's processes when the test process dies without doing so.

A small child process reads process ids from a pipe. When the pipe closes, whoever held the
other end is gone (killed, crashed, or done), and what is still on its list is ended, each by
its own id. `Process` adds and drops entries; the rest of this module is that child's program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

_GRACE = 3.0


class Lifeline:
    """Our end of the pipe; one for each control plane."""

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
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.close()
        self._child.wait()

    def _send(self, line: str) -> None:
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.write(f"{line}\n".encode())
            self._child.stdin.flush()


def _signal_each(pids: set[int], number: signal.Signals) -> set[int]:
    """Send a signal to each process; return those that were still there."""
    there = set()
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        there.add(pid)
    return there


def _main() -> None:
    pids: set[int] = set()
    for line in sys.stdin:
        if line.startswith("+"):
            pids.add(int(line[1:]))
        else:
            pids.discard(int(line[1:]))
    left = _signal_each(pids, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = {pid for pid in left if _is_alive(pid)}
    _signal_each(left, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    _main()
