"""What one placement keeps for the next, so that a pass in which little changed takes little time.

It decides nothing: without it, or with another cluster's, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import is_
from typing import Any, TypeVar

from reconciler.model.placement import Placement
from reconciler.placement.nodes.bound_groups import Tally
from reconciler.placement.problem import Problem

Made = TypeVar("Made")

_LONG = 1000
"""Longer sequences count as equal only if they hold the same objects, since comparing their values takes too long."""


class Memory:
    """The last problem with its placement, and what was computed from parts of it. tally: bound pods as last counted."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._inputs: tuple[Any, ...] | None = None
        self._placement: Placement | None = None
        self._made: dict[str, tuple[tuple[Any, ...], Any]] = {}

    def recall(self, problem: Problem) -> Placement | None:
        """The last placement, if its problem was the same. A view with a new revision may still be the same to placement."""
        view = problem.view
        seen = (getattr(view, item.name) for item in fields(view) if item.compare and item.name != "revision")
        inputs = (*seen, *(getattr(problem, item.name) for item in fields(problem) if item.name != "view"))
        if self._inputs is not None and _all_same(inputs, self._inputs):
            return self._placement
        self._inputs, self._placement = inputs, None
        return None

    def keep(self, placement: Placement) -> Placement:
        self._placement = placement
        return placement

    def once(self, name: str, inputs: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """The value made under this name from the same inputs; otherwise a new one. It must not be modified."""
        known = self._made.get(name)
        if known is not None and _all_same(inputs, known[0]):
            made: Made = known[1]
            return made
        made = make()
        self._made[name] = (inputs, made)
        return made


def _all_same(ones: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(ones) == len(others) and all(map(_same, ones, others))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        if len(one) != len(other):
            return False
        if len(one) > _LONG:
            return all(map(is_, one, other))
    return bool(one == other)
