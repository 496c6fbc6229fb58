"""How the process ends: by a signal, or by the watchdog where nothing else can end it.

A pass reports every stage and every call to the cluster; a poll reports its beginning. Git reports all that it reads and writes for
either. If one is silent for too long, health fails within two minutes; placing may compile its loops first, which has two minutes more.
The process then ends by itself and shows where every thread was. Health itself cannot answer while one operation holds the interpreter.
So a C thread of `faulthandler` ends the process too unless it is postponed each second. That one is for a held interpreter alone: it reads
the frames of threads without asking, and beside threads that run it breaks the process more often than it shows them.
A kill at any instant loses nothing, and the daemon's supervisor restarts it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While it lasts, either signal calls `stop`, which must be safe in a signal handler. Outside the main thread it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda _number, _frame: stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals(code: int) -> Iterator[None]:
    """For the time before and after the daemon runs: either signal ends the process cleanly with this exit code.

    Without it a signal in the first second would cause an error, and process 1 of a container would ignore it.
    """
    with stopped_by_signals(lambda: sys.exit(code)):
        yield


PATIENCE = 90.0
"""Seconds without progress until a pass or a poll counts as stuck."""
SLOW = 20.0
"""Seconds without progress until a pass counts as held up. It may still go on, so the process is healthy, but not ready."""
GIT = "git"
"""The phase in which a pass waits for Git: the first tree, if no poll has brought it yet."""
FROZEN = 100.0
"""Seconds until the process ends once something is stuck, or nothing postpones its end."""


class Watchdog:
    """more: by phase, seconds that it may take beyond the patience. ends_process: False in tests and in library use.
    elsewhere: a complaint of another watchdog of this process, "" for none.

    Thread-safe, since its state is replaced as a whole.
    """

    def __init__(
        self,
        *,
        patience: float = PATIENCE,
        more: Mapping[str, float] | None = None,
        ends_process: bool = False,
        frozen: float = FROZEN,
        seconds: Callable[[], float] = monotonic,
        elsewhere: Callable[[], str] = lambda: "",
    ) -> None:
        self._patience = patience
        self._more = dict(more or {})
        self._ends_process = ends_process
        self._frozen = frozen
        self._seconds = seconds
        self._elsewhere = elsewhere
        self.on_stuck: Callable[[], None] = lambda: None
        """Called each second while a pass is stuck, before the process ends."""
        self._at: tuple[str, float] | None = None
        self._polls_since: float | None = None
        self._git_at = 0.0
        self._well_at = seconds()

    def progress(self, phase: str) -> None:
        """Reports that the pass has reached this phase, or makes progress in it."""
        self._at = (phase, self._seconds())

    def rest(self) -> None:
        """Reports that no pass is under way."""
        self._at = None

    def git_progress(self) -> None:
        """Reports progress of Git. A poll and a pass never use it at the same time: one waits for the other."""
        self._git_at = self._seconds()

    def poll_begins(self) -> None:
        """Reports that a poll of the repository begins, independently of passes."""
        self._polls_since = self._seconds()

    def poll_ended(self) -> None:
        self._polls_since = None

    @property
    def complaint(self) -> str:
        """What is wrong; "" for nothing."""
        polls_since = self._polls_since
        if said := self._of_pass(self._patience):
            return said
        if polls_since is not None and (silent := self._too_long(GIT, polls_since, self._patience)):
            return f"a poll of the repository has made no progress for {silent:.0f} s"
        return ""

    @property
    def held_up(self) -> str:
        """What holds up the pass under way, long before that is a complaint; "" for nothing."""
        return self._of_pass(min(SLOW, self._patience))

    def _of_pass(self, patience: float) -> str:
        at = self._at
        if at is not None and (silent := self._too_long(*at, patience)):
            return f"a pass has made no progress for {silent:.0f} s (phase: {at[0]})"
        return ""

    def _too_long(self, phase: str, since: float, patience: float) -> float:
        """Seconds since `since`; 0 while the phase may still take that long."""
        silent = self._seconds() - (max(since, self._git_at) if phase == GIT else since)
        return silent if silent > patience + self._more.get(phase, 0.0) else 0.0

    def feed(self) -> None:
        """Postpones the end of the process. If something has been stuck for long, ends it. Must be called each second."""
        if self._of_pass(self._patience):
            self.on_stuck()
        if not self._ends_process:
            return
        now = self._seconds()
        if not (self.complaint or self._elsewhere()):
            self._well_at = now
        elif now - self._well_at >= self._frozen:
            faulthandler.dump_traceback()
            os._exit(1)
        faulthandler.dump_traceback_later(self._frozen, exit=True)

    def close(self) -> None:
        if self._ends_process:
            faulthandler.cancel_dump_traceback_later()
