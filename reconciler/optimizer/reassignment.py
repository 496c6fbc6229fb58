"""Places chunks on planned nodes as patterns say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.item_types import PackingProblem, Shape
from reconciler.placement.batches import Batch
from reconciler.placement.engine.journal import Saved
from reconciler.placement.engine.state import State
from reconciler.placement.offers.node_templates import NodeTemplate


def reassign(state: State, problem: PackingProblem, patterns: Sequence[Pattern]) -> str:
    """Why it cannot be, with the state left in the middle of it; "" when the patterns are in place.

    Undoes everything first, since only the last step can be undone, and then places on existing bins what was there.
    """
    existing = [entry for entry in state.entries() if entry.bin < state.base]
    state.roll_back(Saved(0))
    for entry in existing:
        state.add_existing(entry.batch, entry.bin, entry.count)
    for was, entries in problem.kept:
        _open(state, was, [(entry.batch, entry.count) for entry in entries])
        state.charge(*_charged(state))
    waiting = [list(reversed(chunks)) for chunks in problem.chunks]
    for pattern in patterns:
        held = [found for item, count in pattern.items for found in _next(waiting[item], count)]
        template = _template(state, [shape for shape, _ in held])
        if template is None:
            return "chunks were thought to share a node that may not"
        used = np.array([shape.batch.needs.request * count for shape, count in held], dtype=np.int64).sum(axis=0)
        if not bool((template.room >= used).all(axis=1).any()):
            return "chunks were thought to fit on a node that do not"
        offers = template.offers
        if offers.minimums and template.least(used) is None:
            return f"NodePool {offers.pool.name} asks for more types (minValues) than hold its nodes"
        _open(state, template, [(shape.batch, count) for shape, count in held])
        charged = _charged(state)
        if state.limits.shortage(*charged) is not None:
            return f"NodePool {offers.pool.name} has limits that it would break"
        state.charge(*charged)
    return ""


def _template(state: State, shapes: Sequence[Shape]) -> NodeTemplate | None:
    """What a node for all of them may be bought as."""
    pool, first = shapes[0].pool, shapes[0].compatibility
    rows = first.rows(pool)
    if not rows.any():
        return None
    found = state.templates.get(pool, rows, state.offers[pool].own_labels(first.wanted), first.wanted, first.own_taint)
    for compatibility in dict.fromkeys(shape.compatibility for shape in shapes[1:]):
        joined = int(compatibility.joined()[found.number])
        if joined < 0:
            return None
        found = state.templates.list[joined]
    return found


def _open(state: State, template: NodeTemplate, chunks: Sequence[tuple[Batch, int]]) -> None:
    (first, held), *rest = chunks
    state.open_planned(first, template, (held,))
    for batch, count in rest:
        state.add_planned(batch, template, (state.planned.count - 1,), (count,))


def _charged(state: State) -> tuple[str, Resources]:
    """What the last node counts against the limits of its NodePool."""
    index = state.planned.count - 1
    return state.planned.of(index).offers.pool.name, state.charged(index)


def _next(waiting: list[tuple[Shape, int]], count: int) -> list[tuple[Shape, int]]:
    """The next so many chunks of what waits, its last first."""
    found = []
    while count:
        shape, there = waiting.pop()
        taken = min(there, count)
        found.append((shape, taken))
        if taken < there:
            waiting.append((shape, there - taken))
        count -= taken
    return found
