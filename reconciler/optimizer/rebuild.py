"""Puts chunks on planned nodes as the optimising mode chose, or back as they were. Used by packings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.optimizer.kinds import Movable, Pattern, contents
from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import Saved, State
from reconciler.placement.offers.node_templates import NodeTemplate
from reconciler.placement.offers.pool_offers import PoolOffers

Chunks = list[tuple[Batch, int]]


class Rebuilder:
    """Knows the fast placement, to be able to go back to it."""

    def __init__(self, state: State, movable: Movable) -> None:
        self._state = state
        self._movable = movable
        self._existing = [put for put in state.entries() if put.bin < state.base]
        self._before: list[tuple[NodeTemplate, Chunks]] = [
            (state.planned.of(index), [(put.batch, put.count) for put in entries])
            for index, entries in enumerate(contents(state))
        ]

    def rebuild(self, patterns: Sequence[Pattern]) -> str:
        """Why the fast placement stands, "" when the patterns are used."""
        before = self._cost()
        self._clear()
        reason = self._fixed_and(patterns)
        if not reason and self._cost() >= before:
            reason = "nothing cheaper was found"
        if reason:
            self._clear()
            for template, chunks in self._before:
                self._put(template, chunks)
                self._charge()
        return reason

    def _cost(self) -> tuple[int, int]:
        planned = self._state.planned
        return int(planned.price[: planned.count].sum()), planned.count

    def _clear(self) -> None:
        """All is undone, since only what came last can be; then what is on existing bins is put there again."""
        self._state.put_back(Saved(0))
        for put in self._existing:
            self._state.put_existing(put.batch, put.bin, put.count)

    def _fixed_and(self, patterns: Sequence[Pattern]) -> str:
        for index in self._movable.fixed:
            self._put(*self._before[index])
            self._charge()
        waiting = [list(reversed(kind.waiting)) for kind in self._movable.kinds]
        for pattern in patterns:
            template = self._template(pattern)
            if template is None:
                return "chunks were thought to share a node that may not"
            chunks = [item for kind, count in pattern.kinds for item in _next(waiting[kind], count)]
            used = np.array([batch.needs.request * count for batch, count in chunks], dtype=np.int64).sum(axis=0)
            if not bool((template.room >= used).all(axis=1).any()):
                return "chunks were thought to fit on a node that do not"
            offers = template.offers
            if offers.minimums and template.least(used) is None:
                return f"NodePool {offers.pool.name} asks for more types (minValues) than hold its nodes"
            self._put(template, chunks)
            if self._is_short():
                return f"NodePool {offers.pool.name} has limits that it would break"
            self._charge()
        return ""

    def _template(self, pattern: Pattern) -> NodeTemplate | None:
        """What a node for all of these may be bought as."""
        state = self._state
        found: NodeTemplate | None = None
        for number, _ in pattern.kinds:
            kind = self._movable.kinds[number]
            if found is None:
                rows, offers = kind.compatibility.rows(kind.pool), state.offers[kind.pool]
                if not rows.any():
                    return None
                found = state.templates.get(
                    kind.pool, rows, offers.own_labels(kind.compatibility.wanted), kind.compatibility.wanted
                )
                continue
            joined = int(kind.compatibility.joined()[found.number])
            if joined < 0:
                return None
            found = state.templates.list[joined]
        return found

    def _put(self, template: NodeTemplate, chunks: Chunks) -> None:
        state = self._state
        (first, held), *rest = chunks
        state.open_planned(first, template, (held,))
        index = state.planned.count - 1
        for batch, count in rest:
            state.put_planned(batch, template, (index,), (count,))

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
    """The next so many of what waits, its last first."""
    found: Chunks = []
    while count:
        batch, there = waiting.pop()
        taken = min(there, count)
        found.append((batch, taken))
        if taken < there:
            waiting.append((batch, there - taken))
        count -= taken
    return found
