"""What one pass worked out, kept for the next, so that a pass over many objects of which one changed works out little."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, TypeVarTuple

Made = TypeVar("Made")
Inputs = TypeVarTuple("Inputs")


class PassMemory:
    """Answers of functions by key. Decides nothing: without it the answers are the same, since a function sees its inputs alone.

    Inputs and answers must never be changed. Those that are the very same objects as before are compared at once. Not thread-safe.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def begin(self) -> None:
        """Another pass begins: what nobody asked for in the one before is forgotten."""
        self._before, self._known = self._known, {}

    def once(self, key: Hashable, make: Callable[[*Inputs], Made], *inputs: *Inputs) -> Made:
        """What `make` makes of the inputs; as it was made in the pass before if they equal those of then. One function for a key."""
        known = self._before.get(key)
        if known is None or known[0] != inputs:
            known = (inputs, make(*inputs))
        self._known[key] = known
        made: Made = known[1]
        return made
