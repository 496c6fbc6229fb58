"""The templates for documents: the packaged ones, and a repository's own, which override them. And the parent's side of the process that
renders: started when first needed, reused, and replaced if it breaks a limit.

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

from reconciler.model.errors import Invalid, Transient
from reconciler.model.refs import SourcePosition
from reconciler.render.channel import encoded, receive

SUFFIX = ".j2"
SECONDS = 2.0
"""The limit of processor time for one template. A NodeClaim takes a thousandth of that."""
PATIENCE = 60.0
"""Seconds to wait for an answer. The limit above is of processor time, which a stopped process does not use."""
_PLACE = re.compile(r'File "headroom-template-(\d+)", line (\d+)')
SECONDS_IN_ALL = 20.0
"""The limit of processor time for all documents of a pass. Each may take 2, but a hundred slow ones must not delay the rest."""
MOST_OUTPUT = 1_000_000
"""The longest rendered document in characters. The API server does not accept much larger objects."""
_LOOPS = "look for nested loops, and for powers and products of large numbers"


class TemplateFailed(Invalid):
    """A template could not be rendered. position: the template's file in the repository, and the line."""

    def __init__(self, message: str, *, position: SourcePosition, own: bool, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.position = position
        self.own = own


class DocumentTemplates:
    """packaged: templates by name. own: a repository's templates by name. folder: where those are, for messages.

    strays: paths of templates that are in the repository but not in the folder.

    process: several of these may use it, one after the other. A template that broke the worker's limits is not tried again by the same
    object, since a hundred claims would otherwise wait a hundred times.
    """

    def __init__(
        self,
        packaged: Mapping[str, str],
        own: Mapping[str, str] | None = None,
        *,
        process: RenderProcess | None = None,
        folder: str = "templates",
        strays: Sequence[str] = (),
    ) -> None:
        self.strays = tuple(strays)
        self.folder = folder.rstrip("/")
        self.own = dict(own or {})
        self._sources = {**packaged, **self.own}
        self._names = list(self._sources)
        self._process = process or RenderProcess()
        self._breached: dict[str, TemplateFailed] = {}
        self._seconds = 0.0

    def render(self, name: str, context: Mapping[str, Any], *, most_output: int = MOST_OUTPUT) -> str:
        """The document's text. context: JSON values; most_output: characters. Raises `TemplateFailed`."""
        answer = self._ask(name, {"render": name, "context": context, "most": most_output})
        return str(answer["text"])

    def position(self, name: str, line: int = 1) -> SourcePosition:
        return SourcePosition(f"{self.folder}/{name}" if self.folder else name, line)

    def _ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        known = self._breached.get(name)
        if known is not None:
            raise TemplateFailed(known.message, position=known.position, own=known.own, hint=known.hint)
        if self._seconds > SECONDS_IN_ALL:
            raise self._failure(
                name,
                1,
                f"all templates together take more than {SECONDS_IN_ALL:g} seconds of processor time",
                hint=_LOOPS,
            )
        try:
            answer = self._process.ask(self._sources, request)
        except (ValueError, TypeError) as error:
            raise self._failure(name, 1, f"what it is given cannot be written as JSON ({error})", hint="") from error
        except BreachError as breach:
            failure = self._breach_failure(name, breach)
            self._breached[name] = failure
            raise failure from breach
        self._seconds += float(answer["seconds"])
        if "failed" in answer:
            raise self._failure(
                str(answer["template"] or name), int(answer["line"]), str(answer["failed"]), hint=str(answer["hint"])
            )
        return answer

    def _breach_failure(self, name: str, breach: BreachError) -> TemplateFailed:
        at = name if breach.template is None else self._names[breach.template]
        if breach.in_time:
            return self._failure(
                at, breach.line, f"the process that renders it was ended by {breach.ended_by}", hint=""
            )
        return self._failure(at, breach.line, f"it takes more than {SECONDS:g} seconds of processor time", hint=_LOOPS)

    def _failure(self, name: str, line: int, why: str, *, hint: str) -> TemplateFailed:
        own = name in self.own
        shown = f"template {name}" + (" (from the repository)" if own else "")
        return TemplateFailed(f"{shown}, line {line}: {why}", position=self.position(name, line), own=own, hint=hint)


class TemplateSource:
    """Makes the templates for each tree of a repository. All are rendered in one process that is started when needed.

    packaged: templates by name. folder: the folder in the repository whose templates override them.
    """

    def __init__(
        self, packaged: Mapping[str, str], folder: str = "templates", *, process: RenderProcess | None = None
    ) -> None:
        self._packaged = packaged
        self._folder = folder
        self._process = process or RenderProcess()

    def of(self, files: Mapping[str, bytes]) -> DocumentTemplates:
        """files: the repository's, by path."""
        folder = self._folder.rstrip("/")
        prefix = f"{folder}/" if folder else ""
        paths = sorted(path for path in files if path.endswith(SUFFIX))
        return DocumentTemplates(
            self._packaged,
            {
                path.removeprefix(prefix): files[path].decode(errors="replace")
                for path in paths
                if path.startswith(prefix)
            },
            process=self._process,
            folder=self._folder,
            strays=[path for path in paths if not path.startswith(prefix)],
        )


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
