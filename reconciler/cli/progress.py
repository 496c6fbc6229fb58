"""Progress on stderr for whatever takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

from reconciler.cli.compilation import Compilation, is_kept

PATIENCE = 2.0
"""Seconds without output that need no explanation."""

STAGES = {
    "git": "reading the repository",
    "manifests": "reading manifests",
    "view": "reading the cluster",
    "demand": "working out demand",
    "placement": "placing chunks",
    "plan": "planning, and checking the repository's templates",
    "templates": "checking templates",
    "render": "rendering",
    "apply": "applying",
}


class Progress:
    """A context manager; call it with a stage's name whenever one begins.

    A stage that takes longer than PATIENCE is named once, and again every ten seconds while it lasts. Compiling inside
    a stage is named as well.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._compilation = Compilation()
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def __call__(self, stage: str) -> None:
        self._stage, self._began = stage, time.monotonic()

    def _watch(self) -> None:
        told: tuple[str, float] = ("", 0.0)
        while not self._over.wait(0.25):
            compiling = self._compilation.is_under_way()
            words, waited = words_of(self._stage, compiling=compiling), time.monotonic() - self._began
            due = PATIENCE if told[0] != words else told[1] + 10
            if words and waited >= due:
                told = (words, waited)
                sys.stderr.write(f"… {words} ({waited:.0f} s)\n")
                sys.stderr.flush()


def words_of(stage: str, *, compiling: bool = False) -> str:
    """Describes the present work, in the stage of that name ("" for none)."""
    if stage != "placement" or not compiling:
        return STAGES.get(stage, stage)
    kept = (
        "once on this machine"
        if is_kept()
        else "in each process, since no cache folder is writable (set NUMBA_CACHE_DIR)"
    )
    return f"compiling the placement loops, {kept}"
