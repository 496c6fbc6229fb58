"""Notices a pass that makes no progress, and ends a process that nothing else can end.

A pass tells of every stage and every call to the cluster. One that has been silent for too long makes health fail. Health
itself cannot answer while one operation holds the interpreter: so a thread of C's, by `faulthandler`, ends the process
unless it is put off each second. A kill at any instant loses nothing, and whoever runs the daemon starts it again.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Mapping
from time import monotonic

PATIENCE = 90.0
"""Seconds without progress until a pass counts as stuck."""
FROZEN = 100.0
"""Seconds until the process ends once nobody puts that off any more."""


class Watchdog:
    """more: seconds that a phase may take beyond the patience. ends_process: not in tests, nor for a mere library.

    Thread-safe: what is noted is replaced as a whole.
    """

    def __init__(
        self,
        *,
        patience: float = PATIENCE,
        more: Mapping[str, float] | None = None,
        ends_process: bool = False,
        frozen: float = FROZEN,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        self._patience = patience
        self._more = dict(more or {})
        self._ends_process = ends_process
        self._frozen = frozen
        self._seconds = seconds
        self._at: tuple[str, float] | None = None

    def progress(self, phase: str) -> None:
        """The pass has come to this phase, or further within it."""
        self._at = (phase, self._seconds())

    def rest(self) -> None:
        """No pass is under way."""
        self._at = None

    @property
    def complaint(self) -> str:
        """What is wrong; "" when nothing is."""
        at = self._at
        if at is None:
            return ""
        phase, since = at
        silent = self._seconds() - since
        if silent <= self._patience + self._more.get(phase, 0.0):
            return ""
        return f"a pass has made no progress for {silent:.0f} s (phase: {phase})"

    def feed(self) -> None:
        """Puts the end of the process off, unless a pass is stuck. To be called each second."""
        if self._ends_process and not self.complaint:
            faulthandler.dump_traceback_later(self._frozen, exit=True)

    def close(self) -> None:
        if self._ends_process:
            faulthandler.cancel_dump_traceback_later()
