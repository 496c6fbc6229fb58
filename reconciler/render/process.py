"""The parent's side of the process that renders: started when first needed, reused, and replaced if it breaks a limit.

It is a fresh interpreter, never a fork, since headroom has threads. It gets no environment, and so no token.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from weakref import finalize

from reconciler.model.errors import Transient
from reconciler.render.channel import encoded, receive

SECONDS = 2.0
"""The limit of processor time for one template. A NodeClaim takes a thousandth of that."""
PATIENCE = 60.0
"""Seconds to wait for an answer. The limit above is of processor time, which a stopped process does not use."""
_PLACE = re.compile(r'File "headroom-template-(\d+)", line (\d+)')


class BreachError(Exception):
    """A request ended the worker. template: its number among the sources, None if none was running. in_time: whether something other
    than the time limit ended the worker."""

    def __init__(self, template: int | None, line: int, *, ended_by: str, in_time: bool) -> None:
        super().__init__(f"the worker was ended by {ended_by}")
        self.template = template
        self.line = line
        self.ended_by = ended_by
        self.in_time = in_time


class RenderProcess:
    """One worker, with the templates it was last given. The worker ends with this object at the latest. Not thread-safe."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        self._sources: Mapping[str, str] = {}

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return None if self._worker is None else self._worker.process.pid

    def ask(self, sources: Mapping[str, str], request: Mapping[str, Any]) -> dict[str, Any]:
        """The worker's answer. Raises `BreachError` if the request ended it, `Transient` if it cannot be started, and ValueError
        if the request cannot be written as JSON."""
        messages = [encoded(request)]
        if self._worker is not None and self._worker.process.poll() is not None:
            self.close()  # it was ended by something else since the last answer
        if self._worker is None:
            self._worker = _Worker()
            self._sources = {}
        if sources != self._sources:
            messages.insert(0, encoded({"sources": dict(sources)}))
        try:
            answer = self._worker.answer(messages)
        except (OSError, ValueError, TypeError) as error:
            raise self._breach(late=isinstance(error, TimeoutError)) from error
        if answer is None:
            raise self._breach()
        self._sources = dict(sources)
        return answer

    def close(self) -> None:
        """Ends the worker; the next request starts another."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _breach(self, *, late: bool = False) -> BreachError:
        worker, self._worker = self._worker, None
        assert worker is not None
        status, told = worker.end(wait=not late)
        if status > 0:
            last = (told.strip().splitlines() or [f"status {status}"])[-1]
            raise Transient(f"the process for templates does not run: {last[:300]}")
        ended_by = signal.Signals(-status).name if status else "itself"
        places = _PLACE.search(told)
        template, line = (None, 1) if places is None else (int(places[1]), int(places[2]))
        return BreachError(template, line, ended_by=ended_by, in_time=not late and status != -signal.SIGPROF)


class _Worker:
    """A running worker and its socket. Its standard error is a file, so that nothing has to read it meanwhile."""

    def __init__(self) -> None:
        """Starts it. Raises `Transient` if the machine has no room for another process."""
        command = [sys.executable, "-P", "-W", "ignore", "-m", "reconciler.render.worker", str(SECONDS)]
        environment = {"PYTHONPATH": _import_path(), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            errors: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed with the process
            self._channel, theirs = socket.socketpair()
            with theirs:
                self.process = subprocess.Popen(  # noqa: S603 - this interpreter, and a module of headroom
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=errors, env=environment
                )
        except OSError as error:
            raise Transient(f"no process for templates can be started ({error.strerror})") from error
        self._channel.settimeout(PATIENCE)
        self._ended = finalize(self, _end, self.process, self._channel, errors)

    def answer(self, messages: Sequence[bytes]) -> dict[str, Any] | None:
        """The answer to the last of the messages; None if the process ended instead."""
        for message in messages:
            self._channel.sendall(message)
        return receive(self._channel)

    def end(self, *, wait: bool = False) -> tuple[int, str]:
        """Ends the process; returns its status and its standard error. wait: it is about to end by itself."""
        if wait:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=PATIENCE)
        return self._ended() or (0, "")


def _import_path() -> str:
    """The folders in which this process finds modules: a checkout, a wheel, or a folder on PYTHONPATH."""
    here = Path(__file__).resolve().parents[2]
    return os.pathsep.join([str(here), *(entry for entry in sys.path if entry)])


def _end(process: subprocess.Popen[bytes], channel: socket.socket, errors: IO[bytes]) -> tuple[int, str]:
    channel.close()
    process.kill()
    status = process.wait()
    errors.seek(0)
    told = errors.read().decode(errors="replace")
    errors.close()
    return status, told
