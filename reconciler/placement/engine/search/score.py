"""How good a placement is, so that several can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import State


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """Compared field by field, less is better. missing: chunks without a place by rank, the highest rank first. price: of new
    nodes, in billionths of a USD an hour. nodes: the number of new ones."""

    missing: tuple[int, ...]
    price: int
    nodes: int


def score_of(state: State, batches: Sequence[Batch], missing: Mapping[int, int]) -> Score:
    by_rank = dict.fromkeys(sorted({batch.rank for batch in batches}), 0)
    for batch in batches:
        by_rank[batch.rank] += missing.get(batch.number, 0)
    count = state.planned.count
    return Score(tuple(by_rank.values()), int(state.planned.price[:count].sum()), count)
