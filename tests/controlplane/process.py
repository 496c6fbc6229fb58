"""One program as a process: start, readiness, log, stop.

Called by the control plane, Gitea, Kueue and tests that run other programs beside them. A process is only ever stopped
through the handle that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from http import HTTPStatus
from typing import TYPE_CHECKING

import urllib3

from tests.controlplane.lifeline import lifeline
from tests.controlplane.programs import find_program
from tests.controlplane.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

_TAIL_LINES = 25
_TAIL_BYTES = 64 * 1024
_READY_SECONDS = 60.0


class ProcessFailedError(RuntimeError):
    """A program ended, or was not ready in time; the message has the end of its log."""


class Process:
    """One program that can be started, stopped and started again. It runs in the `with` block, ready from the beginning."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        program: str = "",
        environment: Mapping[str, str] | None = None,
        ready: str = "",
    ) -> None:
        """Nothing runs yet. The log goes to `folder`/NAME.log, where the program also runs.

        `program`: its path, where it is none of ours with this name. `ready`: the address that answers 200 once it is.
        """
        self.name = name
        self.command = [program or str(find_program(name)), *arguments]
        self.log = folder / f"{name}.log"
        self._folder = folder
        # Not the caller's environment: its proxies, KUBECONFIG or FEATURE_GATES would leak in.
        self._environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **(environment or {})}
        self._ready = ready
        self._handle: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start, and wait until it is ready; it does not go on if that fails."""
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        self.stop()

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._handle is not None and self._handle.poll() is None

    def start(self) -> None:
        """Start it and return at once; its log is continued."""
        if self.running:
            message = f"{self.name} is running already"
            raise ProcessFailedError(message)
        with self.log.open("ab") as log:
            # Its own session: Ctrl-C reaches the tests only, which then stop things in order.
            self._handle = subprocess.Popen(
                self.command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        lifeline().add(self._handle.pid)

    def wait_until(self, ready: Callable[[], object]) -> None:
        """Wait for `ready`, but no longer than the process lives."""

        def check() -> bool:
            if not self.running:
                code = None if self._handle is None else self._handle.returncode
                message = f"{self.name} ended (exit status {code}); {self.tail()}"
                raise ProcessFailedError(message)
            return bool(ready())

        try:
            eventually(check, within=_READY_SECONDS, what=f"{self.name} is ready", every=0.05)
        except AssertionError as error:
            message = f"{error}; {self.tail()}"
            raise ProcessFailedError(message) from error

    def wait_until_ready(self) -> None:
        """Wait until it answers, if it is one that does."""
        if self._ready:
            self.wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(urllib3.request("GET", self._ready, retries=False, timeout=2.0).status == HTTPStatus.OK)
        except urllib3.exceptions.HTTPError:
            return False

    def signal_stop(self) -> None:
        """Ask it to end, without waiting."""
        if self._handle is not None and self.running:
            self._handle.send_signal(signal.SIGTERM)

    def stop(self, *, grace: float = 5.0) -> None:
        """End it, by force after `grace` seconds. Nothing happens if it does not run."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        try:
            if handle.poll() is None:
                handle.send_signal(signal.SIGTERM if grace > 0 else signal.SIGKILL)
                handle.wait(timeout=grace or None)
        except subprocess.TimeoutExpired:
            handle.kill()
            handle.wait()
        except BaseException:
            # Interrupted while waiting: no second chance to come back here.
            handle.kill()
            handle.wait()
            raise
        finally:
            lifeline().drop(handle.pid)

    def tail(self) -> str:
        """The end of its log, with a heading that says where the rest is."""
        if not self.log.exists():
            return f"no log at {self.log}"
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
        return f"end of {self.log}:\n" + "\n".join(text.splitlines()[-_TAIL_LINES:])
