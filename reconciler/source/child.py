"""One git process and its pipes, within limits of time, output and memory. It is ended together with its helpers."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic

_PIECE = 2**16
_LAST_WORDS = 2**14
"""How many bytes of git's messages to keep. For a damaged pack it writes one for each object."""
_GONE_WITHIN = 5.0
"""Seconds to wait for killed processes. One that hangs in the kernel, as on a lost file system, takes longer."""
SILENCE = 90.0
"""After this many seconds without a byte read or written git is ended, whatever its time limit. A transfer reports progress."""
MEMORY = 512 * 2**20
"""Bytes of memory that git may allocate. Mapped files do not count."""


_heard: ContextVar[Callable[[], None] | None] = ContextVar("heard", default=None)


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """In this block and thread, the listener is called whenever a git process starts, reads or writes.

    A slow operation runs many commands from many places, and this spares each of them a parameter for the listener.
    """
    token = _heard.set(listener)
    try:
        yield
    finally:
        _heard.reset(token)


class OutOfTimeError(Exception):
    """Git did not finish within the time limit, or was silent for too long."""


class OutputTooLongError(Exception):
    """Git wrote more than the caller can hold."""


class Child:
    """process: just started, the leader of its own group, with pipes for output, errors and, unless None, input. feed: its input.

    Its error pipe is always drained, since git would block on a full one.
    """

    def __init__(self, process: subprocess.Popen[bytes], feed: bytes = b"") -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._input = memoryview(feed)
        self._output = bytearray()
        self._errors = bytearray()
        _bind_memory(process.pid)
        _tell()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE)

    @property
    def errors(self) -> bytes:
        """The last part of its output on standard error so far."""
        return bytes(self._errors)

    def output(self, deadline: float, most: int) -> bytes:
        """All of its output. deadline: of `time.monotonic`. most: in bytes."""
        while self._pump(deadline, most):
            pass
        output, self._output = bytes(self._output), bytearray()
        return output

    def status(self, deadline: float) -> int:
        """Waits until it ends by itself; returns its exit status."""
        try:
            return self._process.wait(_wait(deadline))
        except subprocess.TimeoutExpired as error:
            raise OutOfTimeError from error

    def end(self) -> None:
        """Ends it and all of its helpers. If it has ended by itself, so have they."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._wait_for_helpers()
        self._process.wait()
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _wait_for_helpers(self) -> None:
        """Waits for the end of the pipes, which comes once the last process that holds them has ended."""
        deadline = monotonic() + _GONE_WITHIN
        self._output.clear()
        with suppress(OutOfTimeError):
            while self._pump(deadline, 2 * _PIECE):
                self._output.clear()

    def _pump(self, deadline: float, most: int) -> bool:
        """Reads and writes what the pipes allow; False once its output has ended."""
        if not self._is_writing():
            return False
        ready = self._selector.select(_wait(deadline))
        if not ready:
            raise OutOfTimeError
        _tell()
        for key, _ in ready:
            if key.fileobj is self._process.stdin:
                self._send()
                continue
            piece = os.read(key.fd, _PIECE)
            if not piece:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._process.stdout:
                self._output += piece
            else:
                self._errors = (self._errors + piece)[-_LAST_WORDS:]
        if len(self._output) > most:
            raise OutputTooLongError
        return True

    def _is_writing(self) -> bool:
        return any(key.fileobj is not self._process.stdin for key in self._selector.get_map().values())

    def _send(self) -> None:
        assert self._process.stdin is not None
        try:
            sent = os.write(self._process.stdin.fileno(), self._input)
        except BrokenPipeError:
            sent = len(self._input)  # it has ended; standard error says why
        self._input = self._input[sent:]
        if not self._input:
            self._selector.unregister(self._process.stdin)
            self._process.stdin.close()


def _tell() -> None:
    listener = _heard.get()
    if listener is not None:
        listener()


def _wait(deadline: float) -> float:
    """Seconds to wait for the next sign of life."""
    return min(max(0.0, deadline - monotonic()), SILENCE)


def _bind_memory(pid: int) -> None:
    """Limits its memory from outside, where the kernel can (Linux). Code between fork and exec is not safe with threads."""
    if hasattr(resource, "prlimit"):
        with suppress(ProcessLookupError, PermissionError, ValueError):  # it has ended, or has a lower limit already
            resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
