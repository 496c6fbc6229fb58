"""What may be packed anew: the chunks on planned nodes, by item type, which is to say those that pack alike. And the way back: the
state with its chunks on nodes as patterns say.

A chunk keeps its NodePool and the relaxation step that led to its node. It also keeps every topology domain in which moving it
could break a rule. So every other rule can be judged one node at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reconciler.optimizer.packing import NodeRules, Packing, Pattern, bin_types_for, planned_pattern
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.limits import is_reservation
from reconciler.placement.engine.state import JournalEntry, State
from reconciler.placement.offers.node_templates import Compatibility, NodeTemplate
from reconciler.placement.requirements import ANYWHERE, Mask, Requirements, one_of


class Shape(NamedTuple):
    """What tells chunks apart. pool: number of their NodePool's offers; compatibility: of their relaxation step, where they are."""

    batch: Batch
    pool: int
    compatibility: Compatibility


@dataclass(frozen=True)
class PackingProblem:
    """nodes: what the fast placement put on each node that may be changed; kept: planned nodes that stay as they are, with what they hold.
    chunks: by item type how many of each shape, in the order in which they were placed."""

    packing: Packing
    nodes: tuple[Pattern, ...]
    kept: tuple[tuple[NodeTemplate, list[JournalEntry]], ...]
    chunks: tuple[tuple[tuple[Shape, int], ...], ...]


def packing_problem(state: State) -> PackingProblem:
    """Nodes of capacity reservations are kept, and those for one demand alone. So are nodes with chunks that have affinity on their host, share volumes, or came
    in a way that the node does not show."""
    by_node: list[list[JournalEntry]] = [[] for _ in range(state.planned.count)]
    for entry in state.entries():
        if entry.bin >= state.base:
            by_node[entry.bin - state.base].append(entry)
    shapes = ((index, _shapes_on(state, index, entries)) for index, entries in enumerate(by_node))
    held = {index: found for index, found in shapes if found is not None}
    every = list(dict.fromkeys(shape for found in held.values() for shape, _ in found))
    pools = np.repeat(np.arange(len(state.offers)), [len(item.rows) for item in state.offers])
    purchases = [shape.compatibility.bought_as & (pools == shape.pool) for shape in every]
    rules = NodeRules.of(state, [shape.batch for shape in every], spread=True)
    rules = replace(rules, conflicts=rules.conflicts | _ask_for_other_labels(state, every))
    numbers, firsts = rules.alike(purchases)
    item_of = dict(zip(every, numbers.tolist(), strict=True))
    of_items: list[list[tuple[Shape, int]]] = [[] for _ in firsts]
    nodes = []
    for index, found in held.items():
        items: Counter[int] = Counter()
        for shape, count in found:
            of_items[item_of[shape]].append((shape, count))
            items[item_of[shape]] += count
        nodes.append(planned_pattern(state, index, items))
    packing = Packing(
        np.array([sum(count for _, count in some) for some in of_items], dtype=np.int64),
        bin_types_for(state, [purchases[first] for first in firsts]),
        rules.only(firsts),
    )
    kept = tuple((state.planned.of(index), some) for index, some in enumerate(by_node) if index not in held)
    return PackingProblem(packing, tuple(nodes), kept, tuple(map(tuple, of_items)))


def _shapes_on(state: State, index: int, entries: Sequence[JournalEntry]) -> list[tuple[Shape, int]] | None:
    """What a planned node holds; None where it is to be kept as it is."""
    template = state.planned.of(index)
    if template.own_taint is not None or is_reservation(template.offers):
        return None
    shapes = [shape for entry in entries if (shape := _shape(state, index, entry)) is not None]
    if len(shapes) < len(entries):
        return None
    return [(shape, entry.count) for shape, entry in zip(shapes, entries, strict=True)]


def _shape(state: State, index: int, entry: JournalEntry) -> Shape | None:
    """By the first of its relaxation steps that the node was made for, in the domains in which it counts there."""
    batch, template = entry.batch, state.planned.of(index)
    constraints = state.constraints(batch)
    if constraints.host_affinity:
        return None
    decided = {key: template.decided(key) for key in constraints.keys}
    place = tuple((key, one_of(value)) for key, value in sorted(decided.items()) if value is not None)
    if len(place) < len(decided):
        return None
    here = Requirements(place)
    for step in batch.needs.relaxations:
        compatibility = state.compatibilities.get(batch.needs, step, here)
        if int(compatibility.joined()[template.number]) >= 0:
            return Shape(batch, template.pool, compatibility)
    return None


def _ask_for_other_labels(state: State, shapes: Sequence[Shape]) -> Mask:
    """Of labels that only the node has, not the catalog. Shapes × shapes."""
    known = {ANYWHERE: 0}
    own = [shape.compatibility.wanted.without(state.offers[shape.pool].offerings.table.keys) for shape in shapes]
    labels = np.array([known.setdefault(wanted, len(known)) for wanted in own], dtype=np.int64)
    return np.asarray((labels[:, None] != labels) & (np.minimum.outer(labels, labels) > 0), dtype=np.bool_)


def reassign(state: State, problem: PackingProblem, patterns: Sequence[Pattern]) -> str:
    """Why it cannot be, with the state left in the middle of it; "" when the patterns are in place.

    Undoes everything first, since only the last step can be undone, and then places on existing bins what was there.
    """
    existing = [entry for entry in state.entries() if entry.bin < state.base]
    state.roll_back(0)
    for entry in existing:
        state.add_existing(entry.batch, entry.bin, entry.count)
    for was, entries in problem.kept:
        _open(state, was, [(entry.batch, entry.count) for entry in entries])
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
        charged = template.charge(used, int(template.cheapest(used[None])[0]))
        if state.limits.shortage(offers.pool.name, charged) is not None:
            return f"NodePool {offers.pool.name} has limits that it would break"
        _open(state, template, [(shape.batch, count) for shape, count in held])
    return ""


def _template(state: State, shapes: Sequence[Shape]) -> NodeTemplate | None:
    """What a node for all of them may be bought as."""
    pool, first = shapes[0].pool, shapes[0].compatibility
    rows = first.rows[pool]
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
    index = state.planned.count
    for batch, count in chunks:
        state.add_planned(batch, template, index, count)


def _next(waiting: list[tuple[Shape, int]], count: int) -> list[tuple[Shape, int]]:
    """Takes the next `count` waiting chunks, newest first."""
    found = []
    while count:
        shape, there = waiting.pop()
        taken = min(there, count)
        found.append((shape, taken))
        if taken < there:
            waiting.append((shape, there - taken))
        count -= taken
    return found
