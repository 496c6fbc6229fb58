"""One git process and its pipes, within limits of time, output and memory. It is ended together with its helpers."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic
from typing import IO

_PIECE = 2**16
_LAST_WORDS = 2**14
"""How many bytes of git's messages to keep. For a damaged pack it writes one for each object."""
_GONE_WITHIN = 5.0
"""Seconds to wait for killed processes. One that hangs in the kernel, as on a lost file system, takes longer."""
SILENCE = 90.0
"""After this many seconds without a byte read or written git is ended, whatever its time limit. A transfer reports progress."""
MEMORY = 512 * 2**20
"""Bytes of memory that git may allocate, and each program that git starts. Mapped files do not count."""
WITHIN_MEMORY = ("/bin/sh", "-c", f'ulimit -d {MEMORY // 2**10} 2>/dev/null; exec "$@"', "sh")
"""What comes before a command that has this limit from its first moment. A limit set from outside comes too late for a program that
git has already started, and code of ours between fork and exec is not safe with threads. Who has a lower limit keeps it."""
NOT_INSTALLED = 127
"""The status of a program that the shell does not find."""


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
    """Git did not finish within its time, or was silent for too long. seconds: the limit that it exceeded."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class OutputTooLongError(Exception):
    """Git wrote more than the caller can hold."""


def result_of(process: subprocess.Popen[bytes], feed: bytes, *, seconds: float, most: int) -> tuple[int, bytes, bytes]:
    """The exit status, the output, and the last messages of a process that has just started, with pipes, as the leader of its own group.

    feed: its input, if it has a pipe for it. seconds: its time. most: bytes of output. It has ended afterwards in any case, and so have
    its helpers.
    """
    _tell()
    try:
        deadline = monotonic() + seconds
        output, errors = _talk(process, memoryview(feed), deadline, most)
        return process.wait(_wait(deadline)), output, errors
    except (OutOfTimeError, subprocess.TimeoutExpired) as error:
        raise OutOfTimeError(seconds if monotonic() >= deadline else SILENCE) from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            # The end of the pipes comes once the last process that holds them has ended.
            with suppress(OutOfTimeError, OutputTooLongError):
                _talk(process, None, monotonic() + _GONE_WITHIN, 2 * _PIECE)
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(OSError):
                pipe.close()


def _talk(
    process: subprocess.Popen[bytes], unsent: memoryview | None, deadline: float, most: int
) -> tuple[bytes, bytes]:
    """All that it writes until it closes its pipes, while it gets its input (None for no more). Its error pipe is always drained, since
    git would block on a full one."""
    output, errors = bytearray(), b""
    with selectors.DefaultSelector() as selector:
        for pipe in filter(None, (process.stdout, process.stderr)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        if process.stdin is not None and unsent is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while any(key.fileobj is not process.stdin for key in selector.get_map().values()):
            ready = selector.select(_wait(deadline))
            if not ready:
                raise OutOfTimeError(SILENCE)
            _tell()
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    unsent = _after_sending(process.stdin, unsent or memoryview(b""), selector)
                elif not (piece := os.read(key.fd, _PIECE)):
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    output += piece
                else:
                    errors = (errors + piece)[-_LAST_WORDS:]
            if len(output) > most:
                raise OutputTooLongError
    return bytes(output), errors


def _after_sending(pipe: IO[bytes], unsent: memoryview, selector: selectors.BaseSelector) -> memoryview:
    """What is left to send. The pipe is closed after the last of it."""
    try:
        unsent = unsent[os.write(pipe.fileno(), unsent) :]
    except BrokenPipeError:
        unsent = unsent[:0]  # it has ended; standard error says why
    if not unsent:
        selector.unregister(pipe)
        pipe.close()
    return unsent


def _tell() -> None:
    listener = _heard.get()
    if listener is not None:
        listener()


def _wait(deadline: float) -> float:
    """Seconds to wait for the next sign of life."""
    return min(max(0.0, deadline - monotonic()), SILENCE)
