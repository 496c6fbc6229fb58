"""Equivalence classes of pod shapes: shapes that differ only in their requests and host ports.

Most of what constraints need is computed once for each class.
"""

from __future__ import annotations

from operator import attrgetter

from reconciler.model.pods import PodShape

_Parts = tuple[object, ...]


class EquivalenceClasses:
    """Gives all shapes of a class the same number."""

    def __init__(self) -> None:
        self._numbers: dict[_Parts, int] = {}
        self._same: dict[tuple[int, ...], tuple[_Parts, int]] = {}
        """Cache by identity of the parts of a shape, which many shapes share and which are slow to hash.

        The parts are kept alive with the number, so that no other object gets their identity.
        """

    def number(self, shape: PodShape) -> int:
        parts = _apart_from_amounts(shape)
        same = tuple(map(id, parts))
        known = self._same.get(same)
        if known is None:
            number = self._numbers.setdefault(parts, len(self._numbers))
            known = self._same[same] = (parts, number)
        return known[1]


_apart_from_amounts = attrgetter(
    *("namespace", "labels", "node_selector", "required_node_terms", "preferred_node_terms", "tolerations"),
    *("topology_spread", "pod_affinity", "pod_anti_affinity", "attachment_terms", "obstacle", "own_taint"),
)
