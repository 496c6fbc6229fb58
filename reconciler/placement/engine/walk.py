"""Makes the arrays that the walk over many batches takes, and records what it placed (see `loops/walk.py`).

Batches that need nothing special go this way, where the loops are compiled: it takes less than half as long then, and twice as long as batch
after batch where they are not. What batches ask for gets its number when it is first met, which holds for the whole placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from reconciler.placement.arrays import BATCH, BOUND, POOL, Flags, Numbers, OfferArrays, RuleArrays, TopologyArrays
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.limits import NODES
from reconciler.placement.engine.domains import combinations_of, prices_differ
from reconciler.placement.engine.fill import Task, has_room, host_rules, most_on_empty, rule_row
from reconciler.placement.engine.open import empty_node
from reconciler.placement.engine.over_domains import joins_dearer, option_row
from reconciler.placement.engine.state import State
from reconciler.placement.loops.walk import (
    ALSO,
    ASKED,
    CHEAPEST_FIRST,
    KNOWN,
    LOGGED,
    MORE_ROWS,
    MOST_OPTIONS,
    NEW_NODE,
    NO,
    ONLY_CHEAPEST,
    PLANNED,
    SIZES,
)
from reconciler.placement.offers.node_templates import Compatibility

MOST_CHUNKS = 1024
"""Batches with more chunks are placed one by one."""
MOST_TEMPLATES = 256
"""With more node templates all batches are."""
_ROWS = 64

_Rows = list[Sequence[int]]
_NOBODY = -1


def _table(rows: _Rows, columns: int) -> Numbers:
    """Rows made before a topology key was known have no domain of it."""
    filled = [[*row, *([-1] * (columns - len(row)))] for row in rows]
    return np.array(filled, dtype=np.int64).reshape(len(rows), columns)


class BatchWalk:
    """The walk of one placement. batches: all that may take part."""

    def __init__(self, state: State, batches: Sequence[Batch]) -> None:
        self._state = state
        self._usable = (
            bool(state.weights)
            and not state.minimums
            and not state.near_limits
            and not any(NODES in state.limits.left(item.pool.name) for item in state.offers)
        )
        self._types = state.templates.types_of(state.weights[0]) if self._usable else np.zeros(0, dtype=np.int64)
        self._kinds: dict[tuple[int, bool], int] = {}
        """By equivalence class, and whether the chunks keep a minimum; -1 for those that are placed one by one."""
        self._kind_rows: _Rows = []
        self._rules: _Rows = []
        self._counted: _Rows = []
        self._options: _Rows = []
        self._spans: dict[tuple[int, Compatibility, int], tuple[int, int]] = {}
        """Where the options for combinations (by identity) begin and end, by the compatibility in the first of them, and the most chunks."""
        self._compatibilities: dict[tuple[Compatibility, int], int] = {}
        """With the most chunks that an empty node takes, whatever its size."""
        self._requests: dict[int, int] = {}
        self._asked: list[Numbers] = []
        self._at: Numbers = np.zeros(KNOWN, dtype=np.int64)
        self._width = 1 + min(MOST_CHUNKS, max((batch.count for batch in batches), default=0))

    def over(self, batches: Sequence[Batch], wanted: Sequence[int]) -> Iterator[int]:
        """Places batches in their order. Gives the index of each that has to be placed by itself, when it is its turn."""
        rows = [self._job(batch, count) for batch, count in zip(batches, wanted, strict=True)]
        jobs, job = np.array(rows, dtype=np.int64).reshape(len(rows), 5), 0
        if not self._kind_rows:
            yield from range(len(batches))
            return
        self._make_tables()
        numbers = np.array([self._state.index_of(batch) for batch in batches], dtype=np.int64)
        while job < len(batches):
            job = job if rows[job][0] == _NOBODY else self._walk(numbers, jobs, job)
            if job < len(batches):
                yield job
                job += 1

    def _job(self, batch: Batch, count: int) -> tuple[int, int, int, int, int]:
        needs, kind = batch.needs, _NOBODY
        if 0 < count < self._width and batch.opens_nodes and not batch.preferences and not needs.shape.host_ports:
            asked = needs.equivalence_class, batch.keeps_minimum
            kind = self._kinds.get(asked, _NOBODY - 1)
            if kind < _NOBODY:
                kind = self._kinds[asked] = self._make_kind(batch) if self._usable else _NOBODY
        if kind == _NOBODY or has_room(self._state, batch):
            return _NOBODY, 0, count, 0, 0
        request = self._requests.get(id(needs.request))
        if request is None:
            request = self._requests[id(needs.request)] = len(self._asked)
            self._asked.append(needs.request)
        return kind, request, count, batch.part, batch.counted

    def _make_kind(self, batch: Batch) -> int:
        state, needs, constraints = self._state, batch.needs, self._state.constraints(batch)
        combinations, by_price = combinations_of(state, batch), NO
        if prices_differ(state, batch):
            by_price = CHEAPEST_FIRST if joins_dearer(needs.shape) else ONLY_CHEAPEST
        if constraints.host_affinity or not needs.relaxations or not 0 < len(combinations) <= MOST_OPTIONS:
            return _NOBODY
        on_hosts = host_rules(state, Task(batch, (), constraints, bare=True, single=False))
        most = most_on_empty(on_hosts)
        key = id(combinations), state.compatibilities.get(needs, needs.relaxations[0], combinations[0].where), most
        if key not in self._spans:
            begin = len(self._options)
            for item in combinations:
                compatibility = state.compatibilities.get(needs, needs.relaxations[0], item.where), most
                number = self._compatibilities.setdefault(compatibility, len(self._compatibilities))
                self._options.append(option_row(state.topology, item, number))
            self._spans[key] = begin, len(self._options)
        rules = [rule_row(state.topology, rule) for rule in constraints.on_labels]
        first = len(self._rules)
        begins = first, first + len(rules), len(self._counted)
        self._kind_rows.append([most, int(constraints.shared), by_price, *self._spans[key], *begins])
        self._rules += rules + on_hosts.tolist()
        numbers = state.topology.counts_of(needs)
        counters = [state.topology.counters[number] for number in numbers]
        self._counted += [
            [number, item.row, int(item.on_hosts)] for number, item in zip(numbers, counters, strict=True)
        ]
        return len(self._kind_rows) - 1

    def _make_tables(self) -> None:
        """After the batches have said what they need."""
        state = self._state
        last = [0, 0, 0, 0, 0, len(self._rules), len(self._rules), len(self._counted)]
        compatibilities = [item for item, _ in self._compatibilities]
        self._ruled: RuleArrays = (
            _table([*self._kind_rows, last], 8),
            _table(self._options, 2 + len(state.topology.numbers)),
            _table(self._rules, 1 + BOUND),
            _table(self._counted, 3),
            np.array(self._asked, dtype=np.int64),
            np.empty(len(self._types), dtype=np.int64),
        )
        self._prices = np.array([item.least_prices[self._types] for item in compatibilities], dtype=np.int64)
        self._costs = np.array([item.costs[self._types] for item in compatibilities], dtype=np.int64)
        self._empty: Numbers = np.full((len(compatibilities), len(state.offers)), -1, dtype=np.int64)
        self._bought: Flags = np.array([item.bought_as for item in compatibilities], dtype=np.bool_)
        self._make_sizes(_ROWS)
        self._templates = -1

    def _make_sizes(self, rows: int) -> None:
        self._at[SIZES] = 0
        self._size_of: Numbers = np.full((len(self._asked), len(self._compatibilities)), -1, dtype=np.int64)
        self._sizes: Numbers = np.empty((rows, 2, len(self._types)), dtype=np.int64)
        self._mixes: Numbers = np.empty((rows, 2, self._width), dtype=np.int64)
        self._useful: Numbers = np.empty(rows, dtype=np.int64)

    def _walk(self, numbers: Numbers, jobs: Numbers, job: int) -> int:
        """Goes on from this batch; returns the one that has to be placed by itself. numbers: of the batches in the journal."""
        state, planned, at = self._state, self._state.planned, self._at
        log: Numbers = np.empty((int(jobs[job:, 2].sum()) + 2 * self._width, 6), dtype=np.int64)
        while True:
            self._see_templates()
            if not self._usable:
                return job
            at[PLANNED], at[LOGGED] = planned.count, 0
            nodes = np.bincount(planned.template[: planned.count], minlength=self._templates)
            offered: OfferArrays = (
                self._types,
                state.templates.pool_of[self._types],
                self._prices,
                self._costs,
                self._empty,
                self._size_of,
                self._sizes,
                self._mixes,
                self._useful,
                state.running_limits.largest,
            )
            columns, seen = state.domain_columns(), state.see()
            # Read last, since new domains may have made the table larger, which is another array then.
            topology: TopologyArrays = (state.topology.labels.table, nodes, columns, seen)
            before = planned.type[: planned.count].copy()
            hosts, limits = (state.topology.hosts.table, state.base), state.running_limits.now()
            stopped = state.kernel.walk(
                planned.arrays,
                *hosts,
                limits,
                self._ruled,
                self._joins,
                self._bought,
                self._grows,
                offered,
                topology,
                jobs,
                log,
                at,
                job,
            )
            job, why = int(stopped[0]), stopped[1]
            if at[LOGGED]:
                rows, whole = log[: at[LOGGED]], int(np.searchsorted(log[: at[LOGGED], BATCH], job))
                rows[:, BATCH] = numbers[rows[:, BATCH]]
                state.note_walked(rows, before, whole)
            if why == NEW_NODE:
                compatibility, _ = list(self._compatibilities)[at[ASKED]]
                self._empty[at[ASKED], at[ALSO]] = empty_node(state, int(at[ALSO]), compatibility).number
            elif why == MORE_ROWS:
                state.allocate_planned(self._width)
                if at[SIZES] + MOST_OPTIONS > len(self._sizes):
                    self._make_sizes(2 * len(self._sizes))
            else:
                return job

    def _see_templates(self) -> None:
        """Takes new templates into the tables, and those that nodes of them have once chunks come to them."""
        state = self._state
        if not self._usable or self._templates == len(state.templates.list):
            return
        known = -1
        while self._usable and known < len(state.templates.list):
            known = len(state.templates.list)
            self._usable = known <= MOST_TEMPLATES
            joins = [item.joined() for item, _ in self._compatibilities]
        self._joins: Numbers = np.array([item[:known] for item in joins], dtype=np.int64)
        self._grows: Flags = np.isin(state.templates.spans[POOL, :known], state.weights[0])
        self._templates = known
