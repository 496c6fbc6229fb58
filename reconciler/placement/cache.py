"""What one placement keeps for the next, so that a pass in which little changed takes little time.

It decides nothing: without it, or with another cluster's, the answer is the same. Bound pods are grouped by shape and counted by node,
so that a pass looks only at pods that came or went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress
from operator import is_, is_not
from typing import Any, TypeVar

from reconciler.model.placement import Placement
from reconciler.model.pods import Pod, PodShape
from reconciler.placement.problem import Problem

Alike = tuple[int, bool, bool, tuple[str, str] | None]
"""Shape (by identity), whether they are daemons, whether they are being deleted, and their DaemonSet (namespace, name)."""


@dataclass(slots=True)
class BoundGroup:
    """Bound pods of one shape.

    nodes: how many are on each node, by its name. version: grows with every change, so that what follows can be kept.
    """

    shape: PodShape
    is_daemon: bool
    deleting: bool
    daemon_set: tuple[str, str] | None
    nodes: dict[str, int] = field(default_factory=dict)
    version: int = 0

    def add(self, node: str, amount: int) -> None:
        count = self.nodes.get(node, 0) + amount
        if count:
            self.nodes[node] = count
        else:
            del self.nodes[node]
        self.version += 1


class Tally:
    """All bound pods of the view that was counted last."""

    def __init__(self) -> None:
        self._bound_groups: dict[Alike, BoundGroup] = {}
        self._pods: Sequence[Pod] = ()
        """Kept alive, since pods and shapes are known by identity and no other object may get theirs."""

    def count(self, pods: Sequence[Pod]) -> list[BoundGroup]:
        """The groups of these pods. A pod is taken as unchanged only if it is the same object as before."""
        if pods is not self._pods:
            gone, come = _changes(self._pods, pods)
            self._add(gone, -1)
            self._add(come, 1)
            self._pods = pods
            if gone:
                self._bound_groups = {
                    key: bound_group for key, bound_group in self._bound_groups.items() if bound_group.nodes
                }
        return list(self._bound_groups.values())

    def _add(self, pods: Iterable[Pod], amount: int) -> None:
        bound_groups = self._bound_groups
        for pod in pods:
            node = pod.node_name
            if node is None:
                continue
            daemon_set = (pod.namespace, pod.owner_name) if pod.owner_kind == "DaemonSet" else None
            key = (id(pod.shape), pod.is_daemon, pod.deleting, daemon_set)
            bound_group = bound_groups.get(key)
            if bound_group is None:
                bound_group = bound_groups[key] = BoundGroup(pod.shape, pod.is_daemon, pod.deleting, daemon_set)
            bound_group.add(node, amount)


def _changes(before: Sequence[Pod], after: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Pods that went, and pods that came.

    If the number of pods is the same, most are in the same place. Comparing place by place then saves looking them up.
    """
    if len(before) == len(after):
        places = list(compress(range(len(after)), map(is_not, before, after)))
        if len(places) <= len(after) // 10:
            return [before[place] for place in places], [after[place] for place in places]
    there, now = dict(zip(map(id, before), before, strict=True)), dict(zip(map(id, after), after, strict=True))
    gone = [there[key] for key in there.keys() - now.keys()]
    return gone, [pod for key, pod in now.items() if key not in there]


Made = TypeVar("Made")

_OTHER_FIELDS = tuple(item for item in fields(Problem) if item.name not in {"view", "options"})

_LONG = 1000
"""Longer sequences count as equal only if they hold the same objects, since comparing their values takes too long."""


class Cache:
    """The last problems with their placements, and what was computed from parts of them. tally: bound pods as last counted.

    A pass may place several problems. Those that are alike have a cache of their own (`of`). answers: how many placements are kept.
    """

    def __init__(self, answers: int = 1) -> None:
        self.tally = Tally()
        self._answers: deque[tuple[tuple[Any, ...], Placement]] = deque(maxlen=answers)
        self._made: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self._others: dict[str, Cache] = {}

    def of(self, problems: str, answers: int = 1) -> Cache:
        """The cache of other problems that each pass places beside the main one, such as trials."""
        return self._others.setdefault(problems, Cache(answers))

    def placement(self, problem: Problem, make: Callable[[], Placement]) -> Placement:
        """The placement of the same problem, if it is among the last; otherwise a new one. A view with a new revision may still be the
        same to placement."""
        view = problem.view
        seen = (getattr(view, item.name) for item in fields(view) if item.compare and item.name != "revision")
        asked = (problem.options, *(getattr(problem, item.name) for item in _OTHER_FIELDS), *seen)
        for number, (inputs, placement) in enumerate(self._answers):
            if _all_same(asked, inputs):
                self._answers.rotate(-1 - number)
                return placement
        placement = make()
        self._answers.append((asked, placement))
        return placement

    def latest(self, name: str, default: Made) -> Made:
        """The value that was made last under this name, from whatever inputs."""
        made: Made = self._made[name][1] if name in self._made else default
        return made

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
