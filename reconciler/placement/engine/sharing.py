"""Volumes that several pods use, counted once on each node, and claims that one pod may have: who has which while placing. Used by
state, which keeps it, and by all that put chunks somewhere.

A chunk that comes to a node where its shared volumes are attached takes no more of what the node attaches. What it takes elsewhere
depends on which of them the node lacks, so that a batch that shares volumes is placed as several: for each set of volumes that some
nodes lack one that brings just these, chunk by chunk, and one that brings none, for the nodes that have all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.pods import Sharing
from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.shared_claims import NOT_IN_USE, InUse
from reconciler.placement.engine.batches import Batch
from reconciler.placement.label_table import Amounts


class Usage:
    """Which shared volumes are attached to which bins, by number, and which claims for one pod are in use. columns: of resources, by
    name; index: number of a node's bin by its name."""

    def __init__(
        self, columns: Sequence[str], in_use: InUse = NOT_IN_USE, index: Mapping[str, int] | None = None
    ) -> None:
        self._columns = {name: column for column, name in enumerate(columns)}
        self._attached: dict[int, Counter[str]] = {
            number: Counter(found)
            for name, found in in_use.volumes.items()
            if (number := (index or {}).get(name)) is not None
        }
        self._claims = Counter(in_use.claims)
        self._variants: dict[tuple[int, frozenset[str]], tuple[Batch, Batch]] = {}
        """By identity of the batch, which is kept to stay itself."""

    def count(self, number: int, sharing: Sharing, more: int) -> None:
        """`more` may be negative, when an attempt is undone."""
        there = self._attached.setdefault(number, Counter())
        for volume, _ in sharing.volumes:
            there[volume] += more
        for claim in sharing.sole:
            self._claims[claim] += more

    def taken(self, sharing: Sharing | None) -> str:
        """The first of its claims for one pod that some pod has, "" for none."""
        return "" if sharing is None else next((claim for claim in sharing.sole if self._claims[claim] > 0), "")

    def most(self, batch: Batch, count: int) -> int:
        """How many of so many chunks claims for one pod leave."""
        sharing = batch.needs.shape.sharing
        if sharing is None or not sharing.sole:
            return count
        return 0 if self.taken(sharing) else min(count, 1)

    def _lacking(self, number: int, volumes: Iterable[str]) -> frozenset[str]:
        there = self._attached.get(number)
        return frozenset(volumes if there is None else (volume for volume in volumes if there[volume] <= 0))

    def variants(self, batch: Batch) -> Sequence[Batch]:
        """The batch as it is to be placed, one for each set of its shared volumes that some bin lacks, the smallest first; itself where
        nothing is shared."""
        sharing = batch.needs.shape.sharing
        if sharing is None or not sharing.volumes:
            return (batch,)
        volumes = [volume for volume, _ in sharing.volumes]
        lacks = {self._lacking(number, volumes) for number in self._attached} | {frozenset(volumes)}
        return [self._bringing(batch, brings) for brings in sorted(lacks, key=lambda item: (len(item), sorted(item)))]

    def _bringing(self, batch: Batch, brings: frozenset[str]) -> Batch:
        known = self._variants.get((id(batch), brings))
        if known is None:
            sharing, request = batch.needs.shape.sharing, batch.needs.request.copy()
            assert sharing is not None
            for volume, resource in sharing.volumes:
                request[self._columns[resource]] -= volume not in brings
            variant = replace(batch, needs=replace(batch.needs, request=request), brings=brings)
            known = self._variants[id(batch), brings] = (batch, variant)
        return known[1]

    def caps(self, batch: Batch, numbers: Iterable[int]) -> Amounts:
        """0 for those of these bins that are none for a variant, since they lack other volumes than it brings. (Of a variant that brings
        some nobody places more than one chunk at once.)"""
        sharing = batch.needs.shape.sharing
        assert sharing is not None
        volumes = [volume for volume, _ in sharing.volumes]
        caps = [PLENTY if self._lacking(number, volumes) == batch.brings else 0 for number in numbers]
        return np.array(caps, dtype=np.int64)

    def spared(self, batch: Batch, bins: int) -> Amounts:
        """By existing bin and resource, what a chunk does not take there since its volumes are attached."""
        sharing = batch.needs.shape.sharing
        spared = np.zeros((bins, len(self._columns)), dtype=np.int64)
        volumes = () if sharing is None else sharing.volumes
        for number, there in self._attached.items() if volumes else ():
            for volume, resource in volumes:
                if number < bins and there[volume] > 0:
                    spared[number, self._columns[resource]] += 1
        return spared


def may_open(batch: Batch) -> bool:
    """Whether a new node, which has no volumes yet, is one for this variant."""
    sharing = batch.needs.shape.sharing
    return batch.brings is None or sharing is None or len(batch.brings) == len(sharing.volumes)


def in_turn(usage: Usage, batch: Batch, count: int, fill: Callable[[Batch, int], int]) -> int:
    """Places up to `count` chunks with `fill`, which is asked for so many of a variant and returns how many found a place: first where
    all their volumes are, then wherever the fewest have to be attached."""
    placed = 0
    while placed < count:
        for variant in usage.variants(batch):
            step = fill(variant, 1 if variant.brings else count - placed)
            if step:
                break
        else:
            break
        placed += step
    return placed
