"""Results of one pass, kept for the next, so that a pass in which one of many objects changed computes little."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, TypeVarTuple

Made = TypeVar("Made")
Inputs = TypeVarTuple("Inputs")


class PassMemory:
    """Results of functions by key. It decides nothing: without it the results are the same, since a function sees only its inputs.

    Inputs and results must never be modified. Inputs that are the same objects as before are not compared. Not thread-safe.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def begin(self) -> None:
        """Begins a pass: results that the last pass did not use are dropped."""
        self._before, self._known = self._known, {}

    def once(self, key: Hashable, make: Callable[[*Inputs], Made], *inputs: *Inputs) -> Made:
        """The result of `make` for the inputs; the last pass's if it had equal inputs. A key is for one function only."""
        known = self._before.get(key)
        if known is None or known[0] != inputs:
            known = (inputs, make(*inputs))
        self._known[key] = known
        made: Made = known[1]
        return made
