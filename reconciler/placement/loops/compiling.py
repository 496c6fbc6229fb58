"""Compiles loops with numba, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any


def jit() -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """A decorator that compiles a loop at its first call; None where numba is absent."""
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, which pays off only for large placements
    except ImportError:
        return None

    def jitted(loop: Callable[..., Any]) -> Callable[..., Any]:
        try:
            found: Any = njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # no folder for the cache is writable
            found = njit(cache=False, nogil=True)(loop)
        else:
            found._cache.load_overload = _whole(found._cache.load_overload)  # noqa: SLF001 - numba has no setting for it
        compiled: Callable[..., Any] = found
        return compiled

    return jitted


def _whole(load: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a truncated cache file count as missing, so that the loop is compiled and written again."""

    def load_whole(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except (UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError):
            return None

    return load_whole
