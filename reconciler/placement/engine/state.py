"""What has been placed so far: on existing bins and on planned ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.quantity import Resources
from reconciler.placement.arrays import KEPT, Numbers, ResourceColumns
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.constraints.domain_counters import Domain, TopologyRule
from reconciler.placement.constraints.limits import NODES as NODES_LIMIT
from reconciler.placement.constraints.limits import NOTHING, PoolLimits, RunningLimits
from reconciler.placement.constraints.node_rules import NodePorts, NodeReadiness, NodeUnschedulable
from reconciler.placement.constraints.resources_fit import ResourcesFit
from reconciler.placement.constraints.topology import ConstraintSet, Topology
from reconciler.placement.engine.journal import (
    CountedIn,
    JournalEntry,
    LimitCharge,
    PlacedArrays,
    Saved,
    Settled,
    Step,
    Walked,
    placed_arrays,
)
from reconciler.placement.loops.kernel import CHUNKS_WORTH_COMPILING, Kernel, compiled, plain
from reconciler.placement.nodes.existing import Bins
from reconciler.placement.nodes.planned import PlannedNodes
from reconciler.placement.offers.cheapest_sizes import worth_of_room
from reconciler.placement.offers.node_templates import Compatibilities, NodeTemplate, NodeTemplates
from reconciler.placement.offers.pool_offers import PoolOffers

Made = TypeVar("Made")


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
        asked = dict(zip(columns.names, (requests * counts[:, None]).sum(axis=0).tolist(), strict=True))
        self.near_limits = limits.are_near({**asked, NODES_LIMIT: float(counts.sum())})
        """Whether limits may leave chunks without a place. Then the first planned node that takes a chunk gets it, not the fullest, and
        those of other domains are left to chunks that have to go there: so more chunks find a place."""
        worth, discounts = worth_of_room(offers, self.templates.room, requests * counts[:, None])
        if self.near_limits:
            worth[:], discounts[:] = 0, 0
        self.templates.discounts = discounts
        self.planned = PlannedNodes(self.templates, worth, kernel)
        self.topology.hosts.reach(self.base + len(self.planned.template))
        self.compatibilities = Compatibilities(self.templates)
        self._kept: dict[tuple[object, ...], Any] = {}
        self.weights = _by_weight(offers)
        """Numbers of pools, in groups of equal weight: the heaviest group first, each group by name."""
        self._journal: list[Step] = []
        self._known_counts: dict[tuple[int, int | tuple[int, ...]], CountedIn] = {}
        """Cache: by node template and equivalence class, or by template and counters, which many classes have in common."""
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

    def save(self) -> Saved:
        return Saved(len(self._journal))

    def roll_back(self, saved: Saved) -> None:
        """Undoes everything done since, the last first."""
        while len(self._journal) > saved:
            step = self._journal.pop()
            if isinstance(step, LimitCharge):
                self.limits.charge(step.pool, step.instead_of, step.more, nodes=-step.nodes)
            elif isinstance(step, Settled):
                self.planned.settle(step.index, step.template, step.position)
            else:
                for entry in [step] if isinstance(step, JournalEntry) else reversed(step.entries()):
                    self._undo(entry)

    def start_again(self, saved: Saved) -> None:
        """Undoes everything done since, and forgets the domains that were expected."""
        self.roll_back(saved)
        self.topology.expected.clear()

    def _undo(self, entry: JournalEntry) -> None:
        self._count(entry, -1)
        if entry.bin >= self.base:
            self.planned.undo(entry.batch, entry.bin - self.base, entry.count, entry.was, entry.position)

    def entries(self, since: Saved | None = None) -> list[JournalEntry]:
        """Everything that was placed (since then, where given), in order."""
        found: list[JournalEntry] = []
        for step in self._journal[since:]:
            if isinstance(step, JournalEntry):
                found.append(step)
            elif isinstance(step, Walked):
                found += step.entries()
        return found

    def placed(self) -> PlacedArrays:
        """The same as arrays, for what goes through everything often."""
        return placed_arrays(self._journal)

    def charge(self, pool: str, more: Resources, instead_of: Resources = NOTHING, *, nodes: int = 1) -> None:
        """Charges a pool's limits, if it has any."""
        if self.limits.is_limited(pool):
            self.limits.charge(pool, more, instead_of, nodes=nodes)
            self._journal.append(LimitCharge(pool, more, instead_of, nodes))

    def charged(self, index: int) -> Resources:
        """The charge of a planned node against its pool's limits: its type, or the smallest list that meets minValues."""
        planned = self.planned
        return planned.of(index).charge(planned.used[index], int(planned.position[index]))

    def settle(self, index: int, template: NodeTemplate, position: int) -> None:
        """Gives a planned node another type, of this template."""
        before = Settled(index, int(self.planned.template[index]), int(self.planned.position[index]))
        self.planned.settle(index, template.number, position)
        self._journal.append(before)

    def may_make_nodes(self) -> bool:
        """Whether the limits of any pool leave room for one more node."""
        return any(
            number not in self.limited or self.running_limits.new_types(number).any()
            for number in range(len(self.offers))
        )

    def constraints(self, batch: Batch) -> ConstraintSet:
        """The rules between pods that its chunks are under: their shape's own, and those of pods that keep it off."""
        return self.topology.constraints(batch.needs, chunks_only=batch.keeps_minimum)

    def add_existing(self, batch: Batch, number: int, count: int) -> None:
        entry = JournalEntry(batch, number, count, self._counted_at(batch, number))
        self._count(entry, 1)
        self._journal.append(entry)

    def add_planned(
        self, batch: Batch, template: NodeTemplate, index: int, count: int, instance_type: int = KEPT
    ) -> None:
        """Adds chunks to a planned node, or to a new one after the last. `template` is what it is from now on.

        instance_type: what it would be bought as then."""
        if index == self.planned.count:
            self.allocate_planned(1)
        was, position = self.planned.add(batch, template, index, count, instance_type)
        if was < 0:
            self.ports.open(self.base + index, template.offers.host_ports)
        counted_in = self._counted_in(batch, template.number)
        entry = JournalEntry(batch, self.base + index, count, counted_in, was, position)
        self._count(entry, 1)
        self._journal.append(entry)

    def allocate_planned(self, fresh: int) -> None:
        """Extends every array that has a row or a column for each planned node."""
        if self.planned.allocate(fresh):
            self.topology.hosts.reach(self.base + len(self.planned.template))

    def note_walked(self, batches: Sequence[Batch], kinds: Numbers, log: Numbers, stopped: int) -> None:
        """Records what the walk placed and counted (see `loops/walk.py`). What it placed of the batch at which it stopped is taken back.

        kinds: by batch, a number that those share which count alike."""
        planned, lists = self.planned, self.templates.list
        new = log[:, 4] < 0
        planned.recount(planned.count + int(new.sum()))
        for index, number in log[new][:, [1, 3]].tolist():
            self.ports.open(self.base + index, lists[number].offers.host_ports)
        # Where chunks of a kind count on nodes of a template, once for each pair of them.
        pairs_of = kinds[log[:, 0]] * len(lists) + log[:, 3]
        _, first, place = np.unique(pairs_of, return_index=True, return_inverse=True)
        pairs = log[first][:, [0, 3]].tolist()
        counted = [self._counted_in(batches[job], number) for job, number in pairs]
        whole = int(np.searchsorted(log[:, 0], stopped))
        if whole:
            self._journal.append(Walked(batches, self.base, log[:whole], counted, place[:whole]))
        for entry in reversed(Walked(batches, self.base, log[whole:], counted, place[whole:]).entries()):
            self._undo(entry)

    def charge_for(self, before: Numbers) -> None:
        """Charges pools with limits for the types that planned nodes have now, in place of those that they had."""
        types, planned = len(self.templates.room), self.planned
        change = np.bincount(planned.type[: planned.count], minlength=types) - np.bincount(before, minlength=types)
        for pool in sorted(self.limited):
            capacities, first = self.offers[pool].capacities, self.templates.type_base[pool]
            counts = change[first : first + len(capacities)].tolist()
            both = list(zip(capacities, counts, strict=True))
            more = Resources.total(capacity * count for capacity, count in both if count > 0)
            instead_of = Resources.total(capacity * -count for capacity, count in both if count < 0)
            if any(counts):
                self.charge(self.offers[pool].pool.name, more, instead_of, nodes=sum(counts))

    def _counted_in(self, batch: Batch, number: int) -> CountedIn:
        """Where chunks count on planned nodes of a template. Cached for that and the equivalence class."""
        known = self._known_counts.get((number, batch.needs.equivalence_class))
        if known is not None:
            return known
        positions = self.topology.counts_of(batch.needs)
        found = self._known_counts.get((number, positions))
        if found is None:
            found = self._known_counts[number, positions] = self._counted_on(self.templates.list[number], positions)
        self._known_counts[number, batch.needs.equivalence_class] = found
        return found

    def _counted_on(self, template: NodeTemplate, positions: Sequence[int]) -> CountedIn:
        every = [(position, self.topology.counters[position]) for position in positions]
        seen = [item for item in every if template.is_included(item[1].counted.inclusion) is not False]
        decided = [(position, template.decided(item.counted.key), item.on_hosts) for position, item in seen]
        labels = [(position, domain) for position, domain, on_hosts in decided if domain is not None and not on_hosts]
        return CountedIn(tuple(labels), tuple(position for position, _, on_hosts in decided if on_hosts))

    def _counted_at(self, batch: Batch, number: int) -> CountedIn:
        """The same on an existing bin."""
        counters = self.topology.counters
        every = [(item, self.topology.counted_domain(item, number)) for item in self.topology.counts_of(batch.needs)]
        known = [(position, domain) for position, domain in every if domain is not None]
        labels = tuple(item for item in known if not counters[item[0]].on_hosts)
        return CountedIn(labels, tuple(position for position, _ in known if counters[position].on_hosts))

    def _count(self, entry: JournalEntry, sign: int) -> None:
        """Counts chunks in their domains, and what they use up of their node. sign: -1 takes them back."""
        counters, more = self.topology.counters, sign * entry.count
        for position, domain in entry.counted_in.labels:
            counters[position].add(domain, more)
        for position in entry.counted_in.hosts:
            counters[position].add(entry.bin, more)
        if entry.bin < self.base:  # of planned nodes the loops keep the account
            self.resources.reserve(entry.batch, entry.bin, more)
        if entry.batch.needs.shape.host_ports:
            self.ports.reserve(entry.batch, entry.bin, more)

    def decided(self, number: int, key: str) -> Domain | None:
        """The domain of a bin; None while it is undecided, or where the label is absent."""
        if number < self.base:
            return self.topology.domains(key)[number]
        if key == HOSTNAME_LABEL:
            return number
        return self.planned.of(number - self.base).decided(key)

    def domains_of(self, rule: TopologyRule) -> set[Domain]:
        """Domains that a spread constraint looks at: of existing and planned bins, and those expected. Not for hostnames."""
        inclusion = self.topology.counters[rule.counter].counted.inclusion
        return self.topology.existing_domains(rule) | self.planned.domains(rule.key, inclusion)

    def least_of(self, rule: TopologyRule) -> int:
        """The global minimum of a spread constraint: the fewest pods that count in any domain it looks at."""
        counter = self.topology.counters[rule.counter]
        if rule.key != HOSTNAME_LABEL:
            domains = self.domains_of(rule)
            return rule.least(map(counter.count, domains), len(domains))
        assert counter.included is not None
        if self.topology.expected.get(rule.counter) and self.may_make_nodes():
            return 0
        existing = np.flatnonzero(counter.included)
        planned = self.planned.hosts(counter.counted.inclusion) + self.base
        # A planned node that may end up outside the rule's view is not counted on for minDomains, but may be the emptiest.
        more = len(self.planned.hosts(counter.counted.inclusion, surely=True)) if rule.numbers[1] > 1 else len(planned)
        counts = self.topology.hosts.table[counter.row, np.concatenate([existing, planned])]
        return rule.least([int(counts.min())] if len(counts) else [], len(existing) + more)

    def bound_of(self, rule: TopologyRule) -> int:
        """The most pods that may count in a domain under the rule, as things stand."""
        return rule.bound(self.least_of(rule) if rule.by_minimum else 0)


def _by_weight(offers: Sequence[PoolOffers]) -> list[tuple[int, ...]]:
    order = sorted(range(len(offers)), key=lambda number: (-offers[number].pool.weight, offers[number].pool.name))
    return [tuple(group) for _, group in groupby(order, key=lambda number: offers[number].pool.weight)]
