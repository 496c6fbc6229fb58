"""Whether and how chunks may come to planned nodes, by what both ask of labels and taints: worked out once for each pair of
words. Used by fill and make.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from reconciler.model.requirements import Toleration
from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.taint_toleration import tolerated
from reconciler.placement.engine.arrays import Numbers
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import Needs, RelaxationStep
from reconciler.placement.offers.node_templates import NodeTemplate, NodeTemplates
from reconciler.placement.offers.pool_offers import NoRows
from reconciler.placement.requirements import Requirements


class Compatibility:
    """Chunks of shapes that ask for the same labels and tolerate the same taints. number: of its own, to know it by."""

    def __init__(self, templates: NodeTemplates, number: int, wanted: Requirements, *, able: frozenset[int]) -> None:
        self.number = number
        self.wanted = wanted
        self._templates = templates
        self._rows: dict[int, Mask] = {}
        for pool in sorted(able):
            rows = templates.offers[pool].rows_for(wanted)
            if not isinstance(rows, NoRows):
                self._rows[pool] = rows
        self._own = {pool: wanted.without(templates.offers[pool].offerings.table.keys) for pool in self._rows}
        self._joined: Numbers = np.zeros(0, dtype=np.int64)
        self._none = [np.zeros(len(item.rows), dtype=np.bool_) for item in templates.offers]
        parts = [self.rows(pool) for pool in range(len(self._none))]
        self.bought_as: Mask = np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)
        """Over the rows of all pools: whether a node that is one may take such chunks and stay it."""

    def rows(self, pool: int) -> Mask:
        """What a new node of a pool may be bought as; nothing when the pool's labels or taints are in the way."""
        return self._rows[pool] if pool in self._rows else self._none[pool]

    @cached_property
    def least_prices(self) -> Numbers:
        """Of each type of all pools, as such chunks can have it; more than anything where they cannot."""
        least = [np.full(len(item.offerings.types), PLENTY, dtype=np.int64) for item in self._templates.offers]
        for pool, rows in self._rows.items():
            offers = self._templates.offers[pool]
            np.minimum.at(least[pool], offers.offerings.types_of[rows], offers.prices[rows])
        return np.concatenate(least)

    def joined(self) -> Numbers:
        """By number of a blueprint, that of the one that a node of it has once such chunks are on it; -1: they may not."""
        while len(self._joined) < len(self._templates.list):
            fresh = [self._join(item) for item in self._templates.list[len(self._joined) :]]
            self._joined = np.concatenate([self._joined, np.array(fresh, dtype=np.int64)])
        return self._joined

    def _join(self, template: NodeTemplate) -> int:
        rows = self._rows.get(template.pool)
        if rows is None:
            return -1
        own = self._own[template.pool]
        if own.entries and template.own.conflict(own) is not None:
            return -1
        both = rows & template.rows
        if not both.any():
            return -1
        return self._templates.get(
            template.pool, both, template.own.both(own), template.wanted.both(self.wanted)
        ).number


class Compatibilities:
    """All that came up in this placement."""

    def __init__(self, templates: NodeTemplates) -> None:
        self._templates = templates
        self._known: dict[tuple[Requirements, frozenset[int]], Compatibility] = {}
        self._asked: dict[tuple[int, int, int], tuple[RelaxationStep, Requirements, Needs, Compatibility]] = {}
        """By identity of what was asked with, since hashing requirements is slow; that is kept to stay itself."""
        self._able: dict[tuple[tuple[Toleration, ...], bool], frozenset[int]] = {}

    def get(self, needs: Needs, relaxation: RelaxationStep, where: Requirements) -> Compatibility:
        asked = (id(relaxation), id(where), id(needs.shape.tolerations))
        kept = self._asked.get(asked)
        if kept is not None:
            return kept[3]
        able = self._tolerated(needs.shape.tolerations, soft_taints=relaxation.soft_taints)
        wanted = relaxation.wanted.both(where)
        key = (wanted, able)
        compatibility = self._known.get(key)
        if compatibility is None:
            compatibility = self._known[key] = Compatibility(self._templates, len(self._known), wanted, able=able)
        self._asked[asked] = (relaxation, where, needs, compatibility)
        return compatibility

    def _tolerated(self, tolerations: tuple[Toleration, ...], *, soft_taints: bool) -> frozenset[int]:
        key = (tolerations, soft_taints)
        if key not in self._able:
            self._able[key] = frozenset(
                number
                for number, offers in enumerate(self._templates.offers)
                if tolerated(offers.taints, tolerations, soft_taints=soft_taints)
            )
        return self._able[key]
