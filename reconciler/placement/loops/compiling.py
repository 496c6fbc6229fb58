"""Compiles loops with numba, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any


def jit() -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """What makes a loop one that is compiled when it is first called; None where numba is absent."""
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, which only large placements are worth
    except ImportError:
        return None

    def jitted(loop: Callable[..., Any]) -> Callable[..., Any]:
        try:
            found: Any = njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # there is no folder that the cache can be written to
            found = njit(cache=False, nogil=True)(loop)
        else:
            found._cache.load_overload = _whole(found._cache.load_overload)  # noqa: SLF001 - numba has no setting for it
        compiled: Callable[..., Any] = found
        return compiled

    return jitted


def _whole(load: Callable[..., Any]) -> Callable[..., Any]:
    """What was cut off while it was written counts as not there: it is compiled again, and written whole."""

    def load_whole(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except (UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError):
            return None

    return load_whole
