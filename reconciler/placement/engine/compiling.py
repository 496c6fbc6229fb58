"""Compiles loops with numba, and tells whether that is what takes the time now. Used by kernel and optimizing/filling, which have
loops, and by those who say on a terminal what is being done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Compiling:
    """depth: functions that are being compiled, one for the sake of another; kept: whether what comes of it is kept for the
    next process, which needs a folder that can be written to."""

    depth: int = 0
    kept: bool = True
    watched: bool = False


NOW = Compiling()
"""Of this process. Loops are compiled when they are called first, which nobody but numba knows beforehand."""


def jit() -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """What makes a loop one that is compiled when it is first called; None where numba is not there."""
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, which only large placements are worth
    except ImportError:
        return None
    _watch()

    def jitted(loop: Callable[..., Any]) -> Callable[..., Any]:
        try:
            found: Callable[..., Any] = njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # there is no folder that the cache can be written to
            NOW.kept = False
            found = njit(cache=False, nogil=True)(loop)
        return found

    return jitted


def _watch() -> None:
    if NOW.watched:
        return
    from numba.core import event  # noqa: PLC0415 - see jit

    class Watch(event.Listener):
        def on_start(self, _event: object) -> None:
            NOW.depth += 1

        def on_end(self, _event: object) -> None:
            NOW.depth -= 1

    event.register("numba:compile", Watch())  # type: ignore[no-untyped-call]
    NOW.watched = True
