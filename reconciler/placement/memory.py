"""What one placement leaves for the next: a pass over a cluster in which little changed works out little.

Nothing in here decides anything: without it, or with another cluster's, the answer is the same.
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
"""Sequences longer than this are only the same when they hold the very same objects: to compare those takes too long."""


class Memory:
    """tally: bound pods as counted last."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._inputs: tuple[Any, ...] | None = None
        self._placement: Placement | None = None
        self._made: dict[str, tuple[tuple[Any, ...], Any]] = {}

    def recall(self, problem: Problem) -> Placement | None:
        """The last placement, if it was of the same problem. (A view may have a new revision and be the same for placement.)"""
        view = problem.view
        seen = (getattr(view, item.name) for item in fields(view) if item.name != "revision")
        inputs = (*seen, *(getattr(problem, item.name) for item in fields(problem) if item.name != "view"))
        if self._inputs is not None and _all_same(inputs, self._inputs):
            return self._placement
        self._inputs, self._placement = inputs, None
        return None

    def keep(self, placement: Placement) -> Placement:
        self._placement = placement
        return placement

    def once(self, name: str, inputs: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """What was made under this name from the same inputs, or else is made now. Nobody may change it."""
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
