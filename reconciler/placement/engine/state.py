"""What has been placed so far: on existing bins and on planned ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.quantity import Resources
from reconciler.placement.arrays import BIN, CHUNKS, KEPT, NOW, WAS, Flags, Numbers, ResourceColumns
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.constraints.domain_counters import Domain, Inclusion, TopologyRule
from reconciler.placement.constraints.limits import NODES as NODES_LIMIT
from reconciler.placement.constraints.limits import NOTHING, PoolLimits, RunningLimits
from reconciler.placement.constraints.node_rules import NodePorts, NodeReadiness, NodeUnschedulable
from reconciler.placement.constraints.resources_fit import ResourcesFit
from reconciler.placement.constraints.topology import ConstraintSet, Topology
from reconciler.placement.loops.kernel import CHUNKS_WORTH_COMPILING, Kernel, compiled, plain
from reconciler.placement.loops.planned_nodes import set_type
from reconciler.placement.nodes.existing import Bins
from reconciler.placement.nodes.planned import PlannedNodes, worth_of_room
from reconciler.placement.offers.node_templates import Compatibilities, NodeTemplate, NodeTemplates
from reconciler.placement.offers.pool_offers import PoolOffers, by_weight

Made = TypeVar("Made")


class Journal:
    """What was placed, in the order in which it happened: a row each time chunks came to a bin, with what it takes to undo that (see
    `arrays.py`)."""

    def __init__(self) -> None:
        self._rows: Numbers = np.empty((256, 6), dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> Numbers:
        """A view, shape (rows, 6)."""
        return self._rows[: self._length]

    def add(self, rows: Numbers | tuple[int, ...], count: int = 1) -> None:
        """Adds one row, or an array of `count` rows."""
        end = self._length + count
        if end > len(self._rows):
            self._rows = np.concatenate([self.rows, np.empty((end, 6), dtype=np.int64)])
        self._rows[self._length : end] = rows
        self._length = end

    def pop(self) -> list[int]:
        """Takes the last row away."""
        self._length -= 1
        row: list[int] = self._rows[self._length].tolist()
        return row


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Chunks that came to a bin. template: as `NOW`."""

    batch: Batch
    bin: int
    count: int
    template: int


class State:
    """Changed by placing; its journal undoes the changes.

    columns: the resources that count. batches: what is going to be placed. kernel: the loops, compiled for large placements.
    """

    def __init__(
        self,
        bins: Bins,
        offers: Sequence[PoolOffers],
        topology: Topology,
        limits: PoolLimits,
        columns: ResourceColumns,
        batches: Sequence[Batch],
        *,
        kernel: Kernel,
    ) -> None:
        self.bins = bins
        self.base = len(bins)
        """The number of existing bins. Planned nodes are numbered after them."""
        self.offers = offers
        self.topology = topology
        self.limits = limits
        self.columns = columns
        names = [origin.name for origin in bins.origins]
        self.resources = ResourcesFit(names, bins.room, bins.running, columns)
        self.ports = NodePorts(names, bins.ports)
        bins.node_affinity.alone = not offers
        self.constraints_on_nodes: tuple[Constraint, ...] = (
            NodeUnschedulable(names, [origin.unavailable for origin in bins.origins]),
            bins.node_affinity,
            bins.taint_toleration,
            self.resources,
            NodeReadiness(names, [not origin.machine.is_initialized for origin in bins.origins]),
            self.ports,
        )
        """In the order of their reasons: the first that allows no chunk is the cause. Rules between pods come after them."""
        self.running_limits = RunningLimits(offers, limits)
        self.limited = frozenset(number for number, item in enumerate(offers) if limits.is_limited(item.pool.name))
        """Numbers of the pools that have limits."""
        self.minimums = any(item.minimums for item in offers)
        """Whether some pool has minValues."""
        self.minimums_within_limits = any(offers[number].minimums for number in self.limited)
        self.templates = NodeTemplates(offers, self.limited, len(columns.names))
        requests = np.array([batch.needs.request for batch in batches], dtype=np.float64).reshape(
            -1, len(columns.names)
        )
        counts = np.array([batch.count for batch in batches], dtype=np.float64)
        asked = requests * counts[:, None]
        in_all = dict(zip(columns.names, asked.sum(axis=0).tolist(), strict=True))
        self.near_limits = limits.are_near({**in_all, NODES_LIMIT: float(counts.sum())})
        """Whether limits may leave chunks without a place. Then the first planned node that takes a chunk gets it, not the fullest, and
        those of other domains are left to chunks that have to go there: so more chunks find a place. And free room has no worth."""
        worth = np.zeros(len(columns.names))
        if not self.near_limits:
            worth, self.templates.discounts = worth_of_room(offers, self.templates.room, asked)
        self.planned = PlannedNodes(self.templates, worth, kernel)
        self.topology.hosts.reach(self.base + len(self.planned.template))
        self.compatibilities = Compatibilities(self.templates)
        self._kept: dict[tuple[object, ...], Any] = {}
        self.weights = by_weight(offers)
        self.batches: list[Batch] = []
        """Those of which something was placed, as the journal numbers them."""
        self._index: dict[int, int] = {}
        """The number of each of them, by identity."""
        self._journal = Journal()
        self._counted = {(item.counted.key, item.counted.inclusion): item.on_hosts for item in topology.counters}
        """What counters differ in as to where they count: label, nodes that they look at, and whether that is the hostname."""
        numbers = {counted: number for number, counted in enumerate(self._counted)}
        self._counted_by = [numbers[item.counted.key, item.counted.inclusion] for item in topology.counters]
        self._domain_columns: Numbers = np.zeros((len(topology.counters), 0), dtype=np.int64)
        self.fullness = bins.fullness()
        """How full existing bins were at the start, so that their order does not change while placing."""

    def expect_work(self, chunks: int) -> None:
        """Announces how many chunks will be placed on planned and new nodes. Loads the compiled loops where they pay off."""
        work = chunks * (self.planned.count + chunks // 16)
        if work > CHUNKS_WORTH_COMPILING and self.planned.kernel is plain():
            self.planned.kernel = compiled()

    @property
    def kernel(self) -> Kernel:
        return self.planned.kernel

    def once(self, key: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """What was made under this key, computed once in a placement. If identities are in the key, what is made keeps their objects alive."""
        made: Made | None = self._kept.get(key)
        if made is None:
            made = self._kept[key] = make()
        return made

    def save(self) -> int:
        """The length of the journal when an attempt begins."""
        return len(self._journal)

    def roll_back(self, saved: int) -> None:
        """Undoes everything done since, the last first."""
        while len(self._journal) > saved:
            place, number, count, now, was, position = self._journal.pop()
            batch, index = self.batches[place], number - self.base
            self._count(batch, number, now, -count)
            if index >= 0:
                before = self.charged(index)
                self.planned.undo(batch, index, count, was, position)
                self._charge(self.templates.list[now].pool, before, index if was >= 0 else None)

    def start_again(self, saved: int) -> None:
        """Undoes everything done since, and forgets the domains that were expected."""
        self.roll_back(saved)
        self.topology.expect_nothing()

    def placed(self, since: int = 0) -> Numbers:
        """Rows of the journal: everything that was placed (since then, where given), in order."""
        rows = self._journal.rows[since:]
        return rows[rows[:, CHUNKS] > 0]

    def entries(self) -> list[JournalEntry]:
        """The same with the batches."""
        rows = self.placed()[:, :WAS].tolist()
        return [JournalEntry(self.batches[place], number, count, now) for place, number, count, now in rows]

    def charged(self, index: int) -> Resources:
        """The charge of a planned node against its pool's limits, if there are any: its type, or the smallest list that meets minValues."""
        planned, template = self.planned, self.planned.of(index)
        if template.pool not in self.limited:
            return NOTHING
        return template.charge(planned.used[index], int(planned.position[index]))

    def _charge(self, pool: int, before: Resources, index: int | None, *, nodes: int = 0) -> None:
        """Charges a pool for what a planned node is now, in place of what it was. index: None for a node that is no more."""
        if pool in self.limited:
            now = NOTHING if index is None else self.charged(index)
            name = self.offers[pool].pool.name
            self.limits.charge(name, now, before, nodes=-1 if index is None else nodes)

    def settle(self, index: int, template: NodeTemplate, position: int) -> None:
        """Gives a planned node another type, of this template."""
        planned, before = self.planned, self.charged(index)
        was, at = int(planned.template[index]), int(planned.position[index])
        set_type(planned.arrays, index, template.number, position)
        self._journal.add((0, self.base + index, 0, template.number, was, at))
        self._charge(template.pool, before, index)

    def may_make_nodes(self) -> bool:
        """Whether the limits of any pool leave room for one more node."""
        return any(
            number not in self.limited or self.running_limits.new_types(number).any()
            for number in range(len(self.offers))
        )

    def constraints(self, batch: Batch) -> ConstraintSet:
        """The rules between pods that its chunks are under: their shape's own, and those of pods that keep it off."""
        return self.topology.constraints(batch.needs, chunks_only=batch.keeps_minimum)

    def index_of(self, batch: Batch) -> int:
        """Its number in the journal."""
        index = self._index.get(id(batch))
        if index is None:
            index = self._index[id(batch)] = len(self.batches)
            self.batches.append(batch)
        return index

    def add_existing(self, batch: Batch, number: int, count: int) -> None:
        self._count(batch, number, -1, count)
        self._journal.add((self.index_of(batch), number, count, -1, -1, 0))

    def add_planned(
        self, batch: Batch, template: NodeTemplate, index: int, count: int, instance_type: int = KEPT
    ) -> None:
        """Adds chunks to a planned node, or to a new one after the last, and charges its pool. `template` is what it is from now on.

        instance_type: what it would be bought as then."""
        is_new = index == self.planned.count
        if is_new:
            self.allocate_planned(1)
        before = NOTHING if is_new else self.charged(index)
        was, position = self.planned.add(batch, template, index, count, instance_type)
        if is_new:
            self.ports.open(self.base + index, template.offers.host_ports)
        self._count(batch, self.base + index, template.number, count)
        self._journal.add((self.index_of(batch), self.base + index, count, template.number, was, position))
        self._charge(template.pool, before, index, nodes=int(is_new))

    def allocate_planned(self, fresh: int) -> None:
        """Extends every array that has a row or a column for each planned node."""
        if self.planned.allocate(fresh):
            self.topology.hosts.reach(self.base + len(self.planned.template))

    def note_walked(self, rows: Numbers, types: Numbers, whole: int) -> None:
        """Records what the walk placed and counted, as rows of the journal. types: of the planned nodes that there were before.

        whole: so many rows are of batches that were placed as a whole; the others are taken back."""
        new, lists = rows[rows[:, WAS] < 0], self.templates.list
        self.planned.count += len(new)
        for number, template in new[:, [BIN, NOW]].tolist():
            self.ports.open(number, lists[template].offers.host_ports)
        now = np.bincount(self.planned.type[: self.planned.count], minlength=len(self.templates.room))
        self.running_limits.charge(now - np.bincount(types, minlength=len(now)))
        saved = self.save() + whole
        self._journal.add(rows, len(rows))
        self.roll_back(saved)

    def _count(self, batch: Batch, number: int, template: int, more: int) -> None:
        """Counts chunks in their domains, and what they use up of their node. template: of a planned one. more: below 0 takes them back."""
        if not more:
            return
        for position in self.topology.counts_of(batch.needs):
            column = self.column(position, number, template)
            if column >= 0:
                counter = self.topology.counters[position]
                counter.counts.table[counter.row, column] += more
        if number < self.base:  # of planned nodes the loops keep the account
            self.resources.reserve(batch, number, more)
        if batch.needs.shape.host_ports:
            self.ports.reserve(batch, number, more)

    def column(self, position: int, number: int, template: int) -> int:
        """Of the counter with this number, the column in which chunks on a bin count; -1 where they do not. template: of a planned one."""
        if number < self.base:
            return int(self.topology.columns(position)[number])
        column = int(self.domain_columns()[position, template])
        return number if column >= 0 and self.topology.counters[position].on_hosts else column

    def domain_columns(self) -> Numbers:
        """Where chunks on planned nodes count, shape (counters, templates): the column of the domain, -1 for nowhere; of counters on the
        hostname not below 0 where they count."""
        fresh = self.templates.list[self._domain_columns.shape[1] :]
        if fresh:
            found = [[self._column(item, *counted) for item in fresh] for counted in self._counted.items()]
            more = np.array(found, dtype=np.int64).reshape(len(found), len(fresh))[self._counted_by]
            self._domain_columns = np.concatenate([self._domain_columns, more], axis=1)
        return self._domain_columns

    def _column(self, template: NodeTemplate, counted: tuple[str, Inclusion | None], on_hosts: bool) -> int:  # noqa: FBT001
        key, inclusion = counted
        if template.is_included(inclusion) is False:
            return -1
        value = None if on_hosts else template.decided(key)
        return -1 + on_hosts if value is None else self.topology.column_of(key, value)

    def columns_of(self, position: int, rows: Numbers) -> Numbers:
        """By row of the journal, the column of the counter with this number in which chunks there count; -1 where they do not."""
        counter, number = self.topology.counters[position], rows[:, BIN]
        there = number < self.base
        found: Numbers = np.empty(len(rows), dtype=np.int64)
        found[there] = self.topology.columns(position)[number[there]]
        found[~there] = self.domain_columns()[position, rows[~there, NOW]]
        return np.where(found >= 0, number, -1) if counter.on_hosts else found

    def decided(self, number: int, key: str) -> Domain | None:
        """The domain of a bin; None while it is undecided, or where the label is absent."""
        if key == HOSTNAME_LABEL:
            return number
        if number < self.base:
            cell = self.bins.table.row(number).get(key)
            return cell if isinstance(cell, str) else None
        return self.planned.of(number - self.base).decided(key)

    def see(self) -> Flags:
        """What spread constraints see (see `Topology.seen`), nodes of all templates included. New domains may make the counters' table
        another array."""
        topology, first = self.topology, self.topology.seen.shape[1]
        fresh = [(first + place, template) for place, template in enumerate(self.templates.list[first - 2 :])]
        found = [
            (item.row, plane, topology.column_of(item.counted.key, domain))
            for plane, template in fresh
            for item in topology.counters
            if item.counted.inclusion is not None and not item.on_hosts
            for domain in template.domains(item.counted.key, item.counted.inclusion)
        ]
        topology.see(len(fresh), found)
        return topology.seen

    def expect_planned(self, rules: Iterable[TopologyRule]) -> None:
        """Lets the domains of the nodes planned now count for these rules from the start of the next attempt."""
        for rule in rules:
            counter = self.topology.counters[rule.counter]
            self.topology.expected.add(rule.counter)
            if not counter.on_hosts:
                self.topology.see(0, [(counter.row, 1, column) for column in self.domains_of(rule).tolist()])

    def domains_of(self, rule: TopologyRule) -> Numbers:
        """The columns of the domains that a spread constraint looks at: of existing and planned bins, and those expected."""
        counter = self.topology.counters[rule.counter]
        if counter.included is not None and counter.on_hosts:
            return np.append(
                np.flatnonzero(counter.included), self.base + self.planned.hosts(counter.counted.inclusion)
            )
        planes = [0, 1, *(2 + number for number in self.planned.present)]
        return np.flatnonzero(self.see()[counter.row, planes].any(axis=0))

    def least_of(self, rule: TopologyRule) -> int:
        """The global minimum of a spread constraint: the fewest pods that count in any domain it looks at."""
        counter, domains = self.topology.counters[rule.counter], self.domains_of(rule)
        number = len(domains)
        if counter.on_hosts:
            if rule.counter in self.topology.expected and self.may_make_nodes():
                return 0
            if rule.numbers[1] > 1:
                # A planned node that may end up outside the rule's view is not counted on for minDomains, but may be the emptiest.
                number -= len(self.planned.hosts(counter.counted.inclusion, unsure=True))
        return rule.least(counter.counts.table[counter.row, domains].tolist(), number)

    def bound_of(self, rule: TopologyRule) -> int:
        """The most pods that may count in a domain under the rule, as things stand."""
        return rule.bound(self.least_of(rule) if rule.by_minimum else 0)
