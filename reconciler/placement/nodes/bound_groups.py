"""Bound pods, grouped by shape and counted by node.

The counts are kept between passes, so that a pass looks only at pods that came or went.
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
