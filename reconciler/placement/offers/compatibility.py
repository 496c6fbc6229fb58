"""Whether chunks may come to planned nodes, by labels and taints, and what template a node has then.

Shapes that ask for the same labels and tolerate the same NodePools share one compatibility, so that this is computed once.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from reconciler.model.requirements import Taint, Toleration
from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.taint_toleration import tolerated
from reconciler.placement.label_table import Mask
from reconciler.placement.loops.arrays import Numbers
from reconciler.placement.needs import Needs, RelaxationStep
from reconciler.placement.offers.node_templates import NodeTemplate, NodeTemplates
from reconciler.placement.offers.pool_offers import NoRows
from reconciler.placement.requirements import Requirements


class Compatibility:
    """Chunks of shapes that ask for the same labels and tolerate the taints of the same NodePools.

    number: identifies it. wanted: what the chunks ask of labels. own_taint: they come only to planned nodes that have it, and others
    never do.
    """

    def __init__(
        self,
        templates: NodeTemplates,
        number: int,
        wanted: Requirements,
        *,
        able: frozenset[int],
        own_taint: Taint | None = None,
    ) -> None:
        """able: numbers of the pools whose taints the chunks tolerate."""
        self.number = number
        self.wanted = wanted
        self.own_taint = own_taint
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
        """By row of the catalogs of all pools: whether a node may be bought as that with such chunks on it."""

    def rows(self, pool: int) -> Mask:
        """By row of the pool's catalog: whether a new node with such chunks may be bought as that.

        All are False where the pool's labels or taints rule the chunks out.
        """
        return self._rows[pool] if pool in self._rows else self._none[pool]

    @cached_property
    def least_prices(self) -> Numbers:
        """By type of all pools, the least price in billionths of a USD an hour for such chunks; PLENTY where there is none."""
        least = [np.full(len(item.offerings.types), PLENTY, dtype=np.int64) for item in self._templates.offers]
        for pool, rows in self._rows.items():
            offers = self._templates.offers[pool]
            np.minimum.at(least[pool], offers.offerings.types_of[rows], offers.prices[rows])
        return np.concatenate(least)

    def joined(self) -> Numbers:
        """By number of a template, that of the template which a node of it has once such chunks are on it.

        -1 where they may not come. New templates are added as they arise, hence the loop.
        """
        while len(self._joined) < len(self._templates.list):
            fresh = [self._join(item) for item in self._templates.list[len(self._joined) :]]
            self._joined = np.concatenate([self._joined, np.array(fresh, dtype=np.int64)])
        return self._joined

    def _join(self, template: NodeTemplate) -> int:
        rows = self._rows.get(template.pool)
        if rows is None or template.own_taint != self.own_taint:
            return -1
        own = self._own[template.pool]
        if own.entries and template.own.conflict(own) is not None:
            return -1
        both = rows & template.rows
        if not both.any():
            return -1
        return self._templates.get(
            template.pool, both, template.own.both(own), template.wanted.both(self.wanted), self.own_taint
        ).number


class Compatibilities:
    """All compatibilities of one placement."""

    def __init__(self, templates: NodeTemplates) -> None:
        self._templates = templates
        self._known: dict[tuple[Requirements, frozenset[int], Taint | None], Compatibility] = {}
        self._asked: dict[tuple[int, int, int, int], tuple[RelaxationStep, Requirements, Needs, Compatibility]] = {}
        """By identity of the arguments, since hashing requirements is slow. The arguments are kept alive beside the result."""
        self._able: dict[tuple[tuple[Toleration, ...], bool], frozenset[int]] = {}

    def get(self, needs: Needs, relaxation: RelaxationStep, where: Requirements) -> Compatibility:
        """where: what is asked of labels besides the relaxation step."""
        own_taint = needs.shape.own_taint
        asked = (id(relaxation), id(where), id(needs.shape.tolerations), id(own_taint))
        kept = self._asked.get(asked)
        if kept is not None:
            return kept[3]
        able = self._tolerated(needs.shape.tolerations, soft_taints=relaxation.soft_taints)
        wanted = relaxation.wanted.both(where)
        key = (wanted, able, own_taint)
        compatibility = self._known.get(key)
        if compatibility is None:
            compatibility = self._known[key] = Compatibility(
                self._templates, len(self._known), wanted, able=able, own_taint=own_taint
            )
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
