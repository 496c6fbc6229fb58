"""Places chunks on planned nodes as patterns say, or back to where the fast placement had them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.item_types import PackingProblem, entries_by_node
from reconciler.placement.batches import Batch
from reconciler.placement.engine.journal import Saved
from reconciler.placement.engine.state import State
from reconciler.placement.offers.node_templates import NodeTemplate
from reconciler.placement.offers.pool_offers import PoolOffers

Chunks = list[tuple[Batch, int]]


class Reassignment:
    """Keeps the fast placement, to be able to go back to it."""

    def __init__(self, state: State, problem: PackingProblem) -> None:
        self._state = state
        self._problem = problem
        self._existing = [entry for entry in state.entries() if entry.bin < state.base]
        self._before: list[tuple[NodeTemplate, Chunks]] = [
            (state.planned.of(index), [(entry.batch, entry.count) for entry in entries])
            for index, entries in enumerate(entries_by_node(state))
        ]

    def apply(self, patterns: Sequence[Pattern]) -> str:
        """Why the fast placement stands; "" when the patterns are in its place."""
        before = self._cost()
        self._clear()
        reason = self._open_all(patterns)
        if not reason and self._cost() >= before:
            reason = "nothing cheaper was found"
        if reason:
            self._clear()
            for template, chunks in self._before:
                self._open(template, chunks)
                self._charge()
        return reason

    def _cost(self) -> tuple[int, int]:
        planned = self._state.planned
        return int(planned.price[: planned.count].sum()), planned.count

    def _clear(self) -> None:
        """Undoes everything, since only the last step can be undone, and then places on existing bins what was there."""
        self._state.roll_back(Saved(0))
        for entry in self._existing:
            self._state.add_existing(entry.batch, entry.bin, entry.count)

    def _open_all(self, patterns: Sequence[Pattern]) -> str:
        for index in self._problem.kept:
            self._open(*self._before[index])
            self._charge()
        waiting = [list(reversed(item.chunks)) for item in self._problem.item_types]
        for pattern in patterns:
            template = self._template(pattern)
            if template is None:
                return "chunks were thought to share a node that may not"
            chunks = [found for item, count in pattern.items for found in _next(waiting[item], count)]
            used = np.array([batch.needs.request * count for batch, count in chunks], dtype=np.int64).sum(axis=0)
            if not bool((template.room >= used).all(axis=1).any()):
                return "chunks were thought to fit on a node that do not"
            offers = template.offers
            if offers.minimums and template.least(used) is None:
                return f"NodePool {offers.pool.name} asks for more types (minValues) than hold its nodes"
            self._open(template, chunks)
            if self._is_short():
                return f"NodePool {offers.pool.name} has limits that it would break"
            self._charge()
        return ""

    def _template(self, pattern: Pattern) -> NodeTemplate | None:
        """What a node for all chunks of the pattern may be bought as."""
        state = self._state
        found: NodeTemplate | None = None
        for number, _ in pattern.items:
            item = self._problem.item_types[number]
            compatibility = item.compatibility
            if found is None:
                rows, offers = compatibility.rows(item.pool), state.offers[item.pool]
                if not rows.any():
                    return None
                own = offers.own_labels(compatibility.wanted)
                found = state.templates.get(item.pool, rows, own, compatibility.wanted, compatibility.own_taint)
                continue
            joined = int(compatibility.joined()[found.number])
            if joined < 0:
                return None
            found = state.templates.list[joined]
        return found

    def _open(self, template: NodeTemplate, chunks: Chunks) -> None:
        state = self._state
        (first, held), *rest = chunks
        state.open_planned(first, template, (held,))
        index = state.planned.count - 1
        for batch, count in rest:
            state.add_planned(batch, template, (index,), (count,))

    def _is_short(self) -> bool:
        offers, charged = self._last()
        return self._state.limits.shortage(offers.pool.name, charged) is not None

    def _charge(self) -> None:
        offers, charged = self._last()
        self._state.charge(offers.pool.name, charged)

    def _last(self) -> tuple[PoolOffers, Resources]:
        index = self._state.planned.count - 1
        return self._state.planned.of(index).offers, self._state.charged(index)


def _next(waiting: Chunks, count: int) -> Chunks:
    """The next so many chunks of what waits, its last first."""
    found: Chunks = []
    while count:
        batch, there = waiting.pop()
        taken = min(there, count)
        found.append((batch, taken))
        if taken < there:
            waiting.append((batch, there - taken))
        count -= taken
    return found
