"""Bound pods, counted: those alike together, by node. Kept between passes, so that only pods that came or went are looked at.

Used by bins (what pods take), topology (where they count) and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import is_not

from reconciler.model.pods import Pod, PodShape

Alike = tuple[int, bool, bool, tuple[str, str] | None]
"""Shape (by identity), whether they are daemons, whether they are being deleted, and their DaemonSet (namespace, name)."""


@dataclass(slots=True)
class BoundGroup:
    """Pods that are alike. nodes: how many are on each, by name; version: grows with every change."""

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
        """Kept so that their identity, by which they were counted, and that of their shapes stays their own."""

    def count(self, pods: Sequence[Pod]) -> list[BoundGroup]:
        """Flocks of these pods. An unchanged pod must be the same object as before to be known again."""
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
    """Objects that went and that came. Where as many are there as before, most are in the same place: then nothing is
    looked up."""
    if len(before) == len(after):
        places = list(compress(range(len(after)), map(is_not, before, after)))
        if len(places) <= len(after) // 10:
            return [before[place] for place in places], [after[place] for place in places]
    there, now = dict(zip(map(id, before), before, strict=True)), dict(zip(map(id, after), after, strict=True))
    gone = [there[key] for key in there.keys() - now.keys()]
    return gone, [pod for key, pod in now.items() if key not in there]
