"""Compiles loops with numba, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def jit() -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """What makes a loop one that is compiled when it is first called; None where numba is absent."""
    try:
        from numba import njit  # noqa: PLC0415 - takes half a second, which only large placements are worth
    except ImportError:
        return None

    def jitted(loop: Callable[..., Any]) -> Callable[..., Any]:
        try:
            found: Callable[..., Any] = njit(cache=True, nogil=True)(loop)
        except RuntimeError:  # there is no folder that the cache can be written to
            found = njit(cache=False, nogil=True)(loop)
        return found

    return jitted
