"""Node templates: what planned nodes may be bought as, kept once for all nodes whose chunks ask for the same.

A template says nothing about what is on a node. A planned node is a template and what it holds. What it may still be bought as
follows from both. Compatibility says whether chunks may come to nodes of a template, by labels and taints.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint, Toleration
from reconciler.placement.arrays import MOST_WORTH, PLENTY, Amounts, Fractions, Numbers
from reconciler.placement.batches import Needs, NodeTerm, RelaxationStep
from reconciler.placement.constraints.domain_counters import Inclusion
from reconciler.placement.constraints.min_values import LeastList, least_list
from reconciler.placement.constraints.node_rules import tolerated
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import ABSENT, Mask, Requirements, Values, settled


@dataclass(slots=True)
class NodeTemplate:
    """What nodes of one pool may be bought as, for chunks that ask for the same labels.

    number: its index in `NodeTemplates.list`. pool: the number of its NodePool's offers.
    rows: by row of the pool's catalog, whether a node may be bought as that, whatever it holds.
    own: labels apart from those that the catalog decides. wanted: what the chunks ask of labels, all together.
    own_taint: of nodes that are for the chunks of one demand alone.

    types, type_rows, type_prices: each type once with its cheapest row and that row's price, cheapest first; shape (types,).
    room: of these types, less daemon pods, shape (types, resources).
    A type that holds no more than a cheaper one is left out, unless the pool has limits, which may rule out the cheaper one.
    """

    number: int
    pool: int
    offers: PoolOffers
    rows: Mask
    own: Requirements
    wanted: Requirements
    types: Numbers
    type_rows: Numbers
    type_prices: Numbers
    room: Amounts
    own_taint: Taint | None = None
    _cells: dict[str, frozenset[str | None]] = field(default_factory=dict)
    _included: dict[int, tuple[Inclusion, bool | None]] = field(default_factory=dict)
    _least: dict[bytes, LeastList | None] = field(default_factory=dict)

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints of its nodes beside those of its pool."""
        return () if self.own_taint is None else (self.own_taint,)

    def cells(self, key: str) -> frozenset[str | None]:
        """The values that its nodes may get of a label, as far as they are known; None among them where a node may lack the label."""
        if key not in self._cells and key not in self.offers.offerings.table.keys:
            values = self.own.get(key) or Values(complement=True)
            self._cells[key] = frozenset() if values.complement else values.names.union({None} if values.absent else ())
        elif key not in self._cells:
            self._cells[key] = settled(self.offers.offerings.table.seen(key, np.flatnonzero(self.rows)))
        return self._cells[key]

    def decided(self, key: str) -> str | None:
        """The one value of a label that its nodes are certain to get, None if there is none."""
        cells = self.cells(key)
        return next(iter(cells)) if len(cells) == 1 else None

    def is_included(self, inclusion: Inclusion | None) -> bool | None:
        """Whether a counter counts pods on its nodes, by the labels that they have; None where that depends on what they are bought as."""
        if inclusion is None:
            return True
        # By identity, since hashing is slow. The inclusion is kept alive beside the answer.
        known = self._included.get(id(inclusion))
        if known is None:
            known = self._included[id(inclusion)] = (inclusion, self._judge(inclusion))
        return known[1]

    def domains(self, key: str, inclusion: Inclusion | None) -> frozenset[str]:
        """The domains in which a counter may see its nodes."""
        if self.is_included(inclusion) is False:
            return frozenset()
        # A node that ends up where the constraint does not look does not count at all.
        terms = () if inclusion is None or inclusion.terms is None else inclusion.terms
        asked = [values for term in terms if (values := term.stable.get(key)) is not None]
        anywhere = len(asked) < len(terms) or not terms
        return frozenset(
            cell
            for cell in self.cells(key)
            if cell is not None and (anywhere or any(values.allows(cell) for values in asked))
        )

    def _judge(self, inclusion: Inclusion) -> bool | None:
        taints, tolerations = (*self.offers.taints, *self.taints), inclusion.tolerations
        if tolerations is not None and not tolerated(taints, tolerations):
            return False
        met = [True] if inclusion.terms is None else [self._meets(term) for term in inclusion.terms]
        labels = [self.cells(key) for key in inclusion.keys if key != HOSTNAME_LABEL]
        if all(item is False for item in met) or not all(cells - {None} for cells in labels):
            return False
        return True if True in met and not any(None in cells for cells in labels) else None

    def _meets(self, term: NodeTerm) -> bool | None:
        if self.own.conflict(term.stable) is not None:
            return False
        both = self.offers.rows_for(term.stable) & self.rows
        if not both.any():
            return False
        asked = term.stable.without(self.offers.offerings.table.keys)
        is_sure = all((self.own.get(key) or ABSENT).is_within(values) for key, values in asked.entries)
        return True if is_sure and bool(both.sum() == self.rows.sum()) else None

    def least(self, used: Amounts) -> LeastList | None:
        """What a node that holds this much must list for minValues of its pool; None where no list has enough values."""
        holds: Mask = np.all(self.offers.room >= used, axis=1)
        key = holds.tobytes()
        if key not in self._least:
            places = np.flatnonzero(np.all(self.room >= used, axis=1))
            rows = self.rows & holds[self.offers.offerings.types_of]
            self._least[key] = least_list(self.offers, rows, int(self.type_rows[places[0]])) if len(places) else None
        return self._least[key]

    def charge(self, used: Amounts, position: int) -> Resources:
        """What a node that holds this much and would be bought as `types[position]` counts against its pool's limits."""
        least = self.least(used) if self.offers.minimums else None
        return self.offers.capacities[int(self.types[position])] if least is None else least.largest

    def cheapest(self, used: Amounts) -> Numbers:
        """used: what nodes hold, shape (nodes, resources). Returns for each the index in `types` of the cheapest that holds it.

        There must be one.
        """
        return np.asarray((self.room[None, :, :] >= used[:, None, :]).all(axis=2).argmax(axis=1), dtype=np.int64)


def net_prices(prices: Numbers, discounts: Fractions) -> Numbers:
    """Prices of types less what their room is worth, by type; PLENTY where a type is not sold."""
    net = np.maximum(prices * (1 - MOST_WORTH), prices - discounts)
    return np.where(prices < PLENTY, net, PLENTY).astype(np.int64)


class NodeTemplates:
    """All templates of one placement by number, with their types in one line for loops over many nodes.

    line: types, rows (both numbered through all pools), prices and least net prices of all templates; shape (4, total types of the templates).
    spans: where the types of a template begin and end in the line, and its pool; shape (3, templates).
    room: of all types of all pools, shape (types, resources). type_base, row_base: by pool, the number of its first type and row.
    """

    def __init__(self, offers: Sequence[PoolOffers], limited: Collection[int], columns: int) -> None:
        self.offers = offers
        self._limited = limited
        self.list: list[NodeTemplate] = []
        self._known: dict[tuple[int, bytes, Requirements, Requirements, Taint | None], NodeTemplate] = {}
        counts = [len(item.offerings.types) for item in offers]
        self.type_base = [sum(counts[:number]) for number in range(len(counts))]
        self.pool_of: Numbers = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        """By type, numbered through all pools."""
        self._types_of: dict[tuple[int, ...], Numbers] = {}
        rows = [len(item.rows) for item in offers]
        self.row_base = [sum(rows[:number]) for number in range(len(rows))]
        rooms = [item.room for item in offers]
        self.room: Amounts = np.ascontiguousarray(
            np.concatenate(rooms) if rooms else np.zeros((0, columns), dtype=np.int64)
        )
        self.spans: Numbers = np.zeros((3, 0), dtype=np.int64)
        self.line: Numbers = np.zeros((4, 0), dtype=np.int64)
        self.discounts: Fractions = np.zeros(len(self.room))
        """By type, what its room takes off its price (see `arrays.py`); set before there is any template."""

    def get(
        self, pool: int, rows: Mask, own: Requirements, wanted: Requirements, own_taint: Taint | None
    ) -> NodeTemplate:
        key = (pool, rows.tobytes(), own, wanted, own_taint)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._made(pool, rows, own, wanted, own_taint)
        return known

    def types_of(self, pools: tuple[int, ...]) -> Numbers:
        """The types of these pools in this order, numbered through all pools."""
        known = self._types_of.get(pools)
        if known is None:
            known = self._types_of[pools] = np.concatenate([np.flatnonzero(self.pool_of == pool) for pool in pools])
        return known

    def _made(
        self, pool: int, rows: Mask, own: Requirements, wanted: Requirements, own_taint: Taint | None
    ) -> NodeTemplate:
        offers = self.offers[pool]
        there = np.flatnonzero(rows)
        order = there[np.lexsort((there, offers.prices[there]))]
        _, first = np.unique(offers.offerings.types_of[order], return_index=True)
        order = order[np.sort(first)]
        types = offers.offerings.types_of[order]
        if pool not in self._limited and len(types) > 1:
            holds = np.ones((len(types), len(types)), dtype=np.bool_)
            for room in offers.room[types].T:
                holds &= room[:, None] >= room[None, :]
            order = order[~np.triu(holds, 1).any(axis=0)]
            types = offers.offerings.types_of[order]
        made = NodeTemplate(
            number=len(self.list),
            pool=pool,
            offers=offers,
            rows=rows,
            own=own,
            wanted=wanted,
            types=np.asarray(types, dtype=np.int64),
            type_rows=np.asarray(order, dtype=np.int64),
            type_prices=np.asarray(offers.prices[order], dtype=np.int64),
            room=np.ascontiguousarray(offers.room[types]),
            own_taint=own_taint,
        )
        self.list.append(made)
        types, rows_sold = made.types + self.type_base[pool], made.type_rows + self.row_base[pool]
        net = net_prices(made.type_prices, self.discounts[types])
        line = np.array((types, rows_sold, made.type_prices, np.minimum.accumulate(net[::-1])[::-1]), dtype=np.int64)
        self.line = np.concatenate([self.line, line], axis=1)
        end = self.line.shape[1]
        span = np.array([[end - len(types)], [end], [pool]], dtype=np.int64)
        self.spans = np.concatenate([self.spans, span], axis=1)
        return made


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
        self.rows: list[Mask] = [
            item.rows_for(wanted) if pool in able else np.zeros(len(item.rows), dtype=np.bool_)
            for pool, item in enumerate(templates.offers)
        ]
        """By pool, and by row of its catalog: whether a new node with such chunks may be bought as that. All are False where the pool's labels
        or taints rule the chunks out."""
        keys = (item.offerings.table.keys for item in templates.offers)
        self._own = wanted.without(next(keys, frozenset()))
        """What the catalog, which all pools share, does not decide."""
        self._joined: Numbers = np.zeros(0, dtype=np.int64)
        self.bought_as: Mask = np.concatenate(self.rows) if self.rows else np.zeros(0, dtype=np.bool_)
        """By row of the catalogs of all pools: whether a node may be bought as that with such chunks on it."""

    @cached_property
    def least_prices(self) -> Numbers:
        """By type of all pools, the least price in billionths of a USD an hour for such chunks; PLENTY where there is none."""
        pairs = zip(self._templates.offers, self.rows, strict=True)
        return np.concatenate([offers.least_prices(rows) for offers, rows in pairs])

    @cached_property
    def costs(self) -> Numbers:
        """The same less what their room is worth."""
        return net_prices(self.least_prices, self._templates.discounts)

    def joined(self) -> Numbers:
        """Maps a node template to the narrower template that a node gets when it takes these chunks, both by number; -1 where it may not.

        New templates are added as they arise, hence the loop.
        """
        while len(self._joined) < len(self._templates.list):
            fresh = [self._join(item) for item in self._templates.list[len(self._joined) :]]
            self._joined = np.concatenate([self._joined, np.array(fresh, dtype=np.int64)])
        return self._joined

    def _join(self, template: NodeTemplate) -> int:
        pool, both = template.pool, self.rows[template.pool] & template.rows
        if template.own_taint != self.own_taint or not both.any():
            return -1
        if self._own.entries and template.own.conflict(self._own) is not None:
            return -1
        own, wanted = template.own.both(self._own), template.wanted.both(self.wanted)
        return self._templates.get(pool, both, own, wanted, self.own_taint).number


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
