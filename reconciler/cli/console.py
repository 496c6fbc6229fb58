"""What commands show on a terminal while they run and when: colours, the width, and progress."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self

import click

from reconciler.model.quantity import whole_number
from reconciler.report.escaping import Paint, plain

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
COMPILING = "compiling the loops of placement, once on a machine"


def paint_for_stdout() -> Paint:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return plain
    return _paint


def width_of_stdout() -> int | None:
    """The columns to wrap at; None if the output is piped, so that lines stay whole."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and (width := whole_number(columns)):
        return width
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _paint(style: str, text: str) -> str:
    if style in {"bold", "dim"}:
        return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
    return click.style(text, fg=style)


class Progress:
    """A context manager; call it with a stage's name whenever one begins.

    A stage that takes longer than PATIENCE is named once, and again every ten seconds while it lasts.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._began = time.monotonic()
        self._compiled = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def __call__(self, stage: str) -> None:
        self._stage, self._began, self._compiled = stage, time.monotonic(), _compiled()

    def _watch(self) -> None:
        told: tuple[str, float] = ("", 0.0)
        while not self._over.wait(0.25):
            words = COMPILING if _compiled() > self._compiled else STAGES.get(self._stage, self._stage)
            waited = time.monotonic() - self._began
            due = PATIENCE if told[0] != words else told[1] + 10
            if words and waited >= due:
                told = (words, waited)
                sys.stderr.write(f"… {words} ({waited:.0f} s)\n")
                sys.stderr.flush()


def _compiled() -> int:
    """How many loops this process has had to compile. Commands that place nothing do not import their module."""
    kernel = sys.modules.get("reconciler.placement.loops.kernel")
    return 0 if kernel is None else len(kernel.not_cached)
