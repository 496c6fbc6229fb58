"""The templates for documents: the packaged ones, and a repository's own, which override them. And the parent's side of the process that
renders: started when first needed, reused, and replaced if it breaks a limit.

It is a fresh interpreter, never a fork, since headroom has threads. It gets no environment, and so no token.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any
from weakref import finalize

from reconciler.model.errors import Invalid, Transient
from reconciler.model.refs import SourcePosition

SUFFIX = ".j2"
SECONDS = 2.0
"""The limit of processor time for one template. A NodeClaim takes a thousandth of that."""
PATIENCE = 60.0
"""Seconds to wait for an answer. The limit above is of processor time, which a stopped process does not use."""
MOST_OUTPUT = 1_000_000
"""The longest rendered document in characters. The API server does not accept much larger objects."""
_LOOPS = "look for nested loops, and for powers and products of large numbers"
_LONGEST_ANSWER = 8 * MOST_OUTPUT
"""In bytes: every character may be escaped."""


class TemplateFailed(Invalid):
    """A template could not be rendered. position: the template's file in the repository, and the line."""

    def __init__(self, message: str, *, position: SourcePosition, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.position = position


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
        self._process = process or RenderProcess()
        self._breached: dict[str, TemplateFailed] = {}

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """The document's text. context: JSON values. Raises `TemplateFailed`."""
        if name in self._breached:
            raise self._breached[name]
        try:
            answer = self._process.ask(self._sources, {"render": name, "context": context, "most": MOST_OUTPUT})
        except (ValueError, TypeError) as error:
            raise self._failure(name, 1, f"what it is given cannot be written as JSON ({error})") from error
        except BreachError as breach:
            self._breached[name] = self._failure(name, 1, str(breach), hint=_LOOPS)
            raise self._breached[name] from breach
        if "late" in answer:
            self._breached[name] = self._failure(answer["template"], answer["line"], _out_of_time(), hint=_LOOPS)
            raise self._breached[name]
        if "failed" in answer:
            raise self._failure(answer["template"], answer["line"], answer["failed"], hint=answer["hint"])
        return str(answer["text"])

    def position(self, name: str, line: int = 1) -> SourcePosition:
        return SourcePosition(f"{self.folder}/{name}" if self.folder else name, line)

    def _failure(self, name: str, line: int, why: str, *, hint: str = "") -> TemplateFailed:
        shown = f"template {name}" + (" (from the repository)" if name in self.own else "")
        return TemplateFailed(f"{shown}, line {line}: {why}", position=self.position(name, line), hint=hint)


class BreachError(Exception):
    """A request ended the worker."""


class RenderProcess:
    """One worker, with the templates it was last given. The worker ends with this object at the latest. Not thread-safe."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._sources: Mapping[str, str] = {}

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return None if self._worker is None else self._worker.pid

    def ask(self, sources: Mapping[str, str], request: Mapping[str, Any]) -> dict[str, Any]:
        """The worker's answer. Raises `BreachError` if the request ended it, `Transient` if it cannot be started, and ValueError
        or TypeError if the request cannot be written as JSON."""
        messages = [json.dumps(request)]
        if self._worker is not None and self._worker.poll() is not None:
            self.close()  # it was ended by something else since the last answer
        if self._worker is None:
            self._worker, self._sources = self._started(), {}
        if sources != self._sources:
            messages.insert(0, json.dumps({"sources": dict(sources)}))
        answer = _answer(self._worker, "".join(f"{message}\n" for message in messages).encode())
        if answer is None:
            raise self._breach()
        self._sources = dict(sources)
        return answer

    def close(self) -> None:
        """Ends the worker; the next request starts another."""
        if self._worker is not None:
            _end(self._worker)
            self._worker = None

    def _started(self) -> subprocess.Popen[bytes]:
        """A fresh interpreter. Raises `Transient` if the machine has no room for another process."""
        command = [sys.executable, "-P", "-W", "ignore", "-m", "reconciler.render.worker", str(SECONDS)]
        environment = {"PYTHONPATH": _import_path(), "PYTHONDONTWRITEBYTECODE": "1"}
        pipe = subprocess.PIPE
        try:
            worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)  # noqa: S603 - this interpreter
        except OSError as error:
            raise Transient(f"no process for templates can be started ({error.strerror})") from error
        finalize(self, _end, worker)
        return worker

    def _breach(self) -> BreachError:
        """Why there is no answer. Raises `Transient` if the worker does not run at all."""
        worker, self._worker = self._worker, None
        assert worker is not None
        with suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=PATIENCE)
        status, told = _end(worker)
        if status > 0:
            last = (told.strip().splitlines() or [f"status {status}"])[-1]
            raise Transient(f"the process for templates does not run: {last[:300]}")
        if status == -signal.SIGVTALRM:
            return BreachError(_out_of_time())
        return BreachError(
            f"the process that renders it was ended by {signal.Signals(-status).name if status else 'itself'}"
        )


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """Makes the templates for each tree of a repository. All are rendered in one process that is started when needed.

    packaged: templates by name. folder: the folder in the repository whose templates override them.
    """

    packaged: Mapping[str, str]
    folder: str = "templates"
    process: RenderProcess = field(default_factory=RenderProcess)

    def of(self, files: Mapping[str, bytes]) -> DocumentTemplates:
        """files: the repository's, by path."""
        folder = self.folder.rstrip("/")
        prefix = f"{folder}/" if folder else ""
        paths = sorted(path for path in files if path.endswith(SUFFIX))
        texts = {path: files[path].decode(errors="replace") for path in paths if path.startswith(prefix)}
        own = {path.removeprefix(prefix): text for path, text in texts.items()}
        strays = [path for path in paths if path not in texts]
        return DocumentTemplates(self.packaged, own, process=self.process, folder=self.folder, strays=strays)


def _out_of_time() -> str:
    return f"it takes more than {SECONDS:g} seconds of processor time"


def _answer(worker: subprocess.Popen[bytes], messages: bytes) -> dict[str, Any] | None:
    """The answer to the last of the messages; None if the process ended instead, or wrote anything else."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    patience = Timer(PATIENCE, worker.kill)
    patience.daemon = True
    patience.start()
    try:
        worker.stdin.write(messages)
        worker.stdin.flush()
        answer = json.loads(worker.stdout.readline(_LONGEST_ANSWER))
    except (OSError, ValueError):
        return None
    finally:
        patience.cancel()
    return answer if isinstance(answer, dict) else None


def _import_path() -> str:
    """The folders in which this process finds modules: a checkout, a wheel, or a folder on PYTHONPATH."""
    here = Path(__file__).resolve().parents[2]
    return os.pathsep.join([str(here), *(entry for entry in sys.path if entry)])


def _end(worker: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Ends the process; returns its status and its standard error."""
    worker.kill()
    with suppress(OSError, ValueError):  # what was left to write, or closed before
        _, told = worker.communicate()
        return worker.returncode, told.decode(errors="replace")
    return worker.wait(), ""
