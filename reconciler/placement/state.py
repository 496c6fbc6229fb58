"""What has been placed so far: on existing bins and on planned ones. Used by fill, make, spread and pack; attempts are undone by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import HostPort
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.placement.amounts import ResourceColumns
from reconciler.placement.batches import Batch
from reconciler.placement.bins import Bins
from reconciler.placement.blueprints import Blueprint, Blueprints
from reconciler.placement.candidates import PoolOffers
from reconciler.placement.counters import Domain, Inclusion, Rule
from reconciler.placement.kernel import Kernel
from reconciler.placement.label_table import Amounts
from reconciler.placement.meetings import Meetings
from reconciler.placement.planned import Before, PlannedNodes
from reconciler.placement.pool_limits import NOTHING, PoolLimits
from reconciler.placement.sizing import Mix, Option, Size
from reconciler.placement.topology import Topology

Touched = tuple[tuple[int, Domain], ...]
"""Counters and the domains in which they counted something."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` chunks of a batch on a bin: existing bins by their number, planned ones after them."""

    bin: int
    batch: int
    count: int


@dataclass(frozen=True, slots=True)
class Put:
    """Chunks that came to a bin, with what it takes to undo that; `before` None for an existing bin, with its ports."""

    batch: Batch
    bin: int
    count: int
    touched: Touched
    before: Before | None
    ports: tuple[HostPort, ...] = ()


@dataclass(frozen=True, slots=True)
class Charge:
    pool: str
    more: Resources
    instead_of: Resources
    nodes: int


@dataclass(frozen=True, slots=True)
class Saved:
    """How far things had come when an attempt began."""

    steps: int
    log_length: int


class State:
    """kernel: compiled loops to use in place of numpy, for large placements."""

    def __init__(
        self,
        bins: Bins,
        offers: Sequence[PoolOffers],
        topology: Topology,
        limits: PoolLimits,
        columns: ResourceColumns,
        *,
        kernel: Kernel | None = None,
    ) -> None:
        self.bins = bins
        self.offers = offers
        self.topology = topology
        self.limits = limits
        self.columns = columns
        self.empty = np.zeros_like(bins.room)
        self.minimum = np.zeros_like(bins.room)
        self.running = bins.running.copy()
        self.ports = dict(bins.ports)
        limited = [limits.is_limited(item.pool.name) for item in offers]
        self.blueprints = Blueprints(offers, limited, len(columns.names))
        self.planned = PlannedNodes(self.blueprints, len(columns.names))
        self.meetings = Meetings(self.blueprints)
        self.kernel = kernel
        self.options: dict[tuple[int, tuple[int, ...], bytes, int, bool], tuple[Option, ...]] = {}
        """Sizes of new nodes that were worked out, by meeting, pools, request, cap and host ports (see options)."""
        self.combinations: dict[tuple[int, tuple[str, ...], bool], list[Any]] = {}
        """Combinations of topology domains by kin and labels (see spread)."""
        self.mixes: dict[int, tuple[tuple[Option, ...], list[Size], dict[int, tuple[Mix, int]]]] = {}
        """Useful sizes, and mixes of them with their prices by number of chunks, by identity of the options (see make)."""
        self.bare_caps: dict[tuple[int, bool], tuple[tuple[Rule, ...], Any]] = {}
        """What rules allow on new nodes, by identity of the rules, which are kept beside it (see host_caps)."""
        self.weights: list[tuple[int, ...]] = []
        """Numbers of pools by weight, once they were sorted (see make)."""
        self.log: list[Entry] = []
        self.demand_bins: dict[ObjectRef, dict[int, int]] = {}
        """How many chunks of a demand are on which bins."""
        self._steps: list[Put | Charge] = []
        self._touched: dict[tuple[int, int], Touched | None] = {}
        self._domains: dict[tuple[str, Inclusion | None], tuple[int, frozenset[Domain]]] = {}
        self._fullness = bins.fullness()

    @property
    def fullness(self) -> Amounts:
        """Of existing bins, by what ran there at the start, so that the order does not move while placing."""
        return self._fullness

    def save(self) -> Saved:
        return Saved(len(self._steps), len(self.log))

    def put_back(self, saved: Saved) -> None:
        """Undoes, last first, what was done since."""
        while len(self._steps) > saved.steps:
            step = self._steps.pop()
            if isinstance(step, Charge):
                self.limits.charge(step.pool, step.instead_of, step.more, nodes=-step.nodes)
            else:
                self._undo(step)
        del self.log[saved.log_length :]

    def start_again(self, saved: Saved) -> None:
        """Undoes what was done since, and forgets what nodes turned out to come with it."""
        self.put_back(saved)
        self.topology.expected.clear()

    def _undo(self, put: Put) -> None:
        for position, domain in put.touched:
            self.topology.counters[position].add(domain, -put.count)
        self.demand_bins[put.batch.demand][put.bin] -= put.count
        if put.before is not None:
            self.planned.undo(put.batch, put.bin - len(self.bins), put.count, put.before)
            return
        self._add_existing(put.batch, put.bin, -put.count)
        if put.batch.needs.shape.host_ports:
            self.ports[put.bin] = put.ports

    def puts(self) -> list[Put]:
        """Everything that was placed, in order."""
        return [step for step in self._steps if isinstance(step, Put)]

    def charge(self, pool: str, more: Resources, instead_of: Resources = NOTHING, *, nodes: int = 1) -> None:
        """Counts against the limits of a pool, if it has any."""
        if self.limits.is_limited(pool):
            self.limits.charge(pool, more, instead_of, nodes=nodes)
            self._steps.append(Charge(pool, more, instead_of, nodes))

    def free(self, batch: Batch) -> Amounts:
        """Room on each existing bin that counts for this batch (see `Recreation`)."""
        taken = self.minimum if batch.keeps_minimum else np.maximum(self.running, self.minimum)
        return np.asarray(self.bins.room - self.empty - taken, dtype=np.int64)

    def taken(self, batch: Batch) -> Amounts:
        """What counts against the room of each planned node for this batch (see `Recreation`)."""
        return self.planned.lean if batch.keeps_minimum else self.planned.used

    def ports_of(self, number: int) -> tuple[HostPort, ...]:
        if number < len(self.bins):
            return self.ports.get(number, ())
        return self.planned.ports[number - len(self.bins)]

    def put_existing(self, batch: Batch, number: int, count: int) -> None:
        before = self.ports.get(number, ())
        self._add_existing(batch, number, count)
        if batch.needs.shape.host_ports:
            self.ports[number] = (*before, *batch.needs.shape.host_ports)
        touched = tuple(
            (position, domain)
            for position in self.topology.counts_of(batch.needs.shape)
            if (domain := self.topology.counted_domain(position, number)) is not None
        )
        self._note(Put(batch, number, count, touched, None, before))

    def _add_existing(self, batch: Batch, number: int, count: int) -> None:
        amounts = batch.needs.request * count
        if batch.pods:
            self.running[number] += amounts
        elif batch.keeps_minimum:
            self.minimum[number] += amounts
        else:
            self.empty[number] += amounts

    def put_planned(self, batch: Batch, index: int, blueprint: Blueprint, count: int) -> None:
        """`index` one past the last makes a new node; `blueprint` is what the node is to be from now on."""
        before = self.planned.put(batch, index, blueprint, count)
        number = len(self.bins) + index
        self.topology.hosts.reach(number + 1)
        self._note(Put(batch, number, count, self._touched_by(batch, index, blueprint), before))

    def _touched_by(self, batch: Batch, index: int, blueprint: Blueprint) -> Touched:
        """Worked out once for a blueprint and shapes that count alike, where it is the same for all of its nodes; there the
        hostname's domain is written as -1."""
        number = len(self.bins) + index
        key = (blueprint.number, self.topology.kin(batch.needs.shape).number)
        if key not in self._touched:
            counters = [self.topology.counters[item].counted for item in self.topology.counts_of(batch.needs.shape)]
            plain = all(
                self.planned.is_plain(blueprint.number, (counted.key,), counted.inclusion) for counted in counters
            )
            self._touched[key] = self._touched_now(batch, index, host=-1) if plain else None
        known = self._touched[key]
        if known is None:
            return self._touched_now(batch, index, host=number)
        return tuple((position, number if domain == -1 else domain) for position, domain in known)

    def _touched_now(self, batch: Batch, index: int, *, host: int) -> Touched:
        touched: list[tuple[int, Domain]] = []
        for position in self.topology.counts_of(batch.needs.shape):
            counted = self.topology.counters[position].counted
            domain = host if counted.key == HOSTNAME_LABEL else self.planned.decided(index, counted.key)
            if domain is not None and self.planned.is_included(index, counted.inclusion):
                touched.append((position, domain))
        return tuple(touched)

    def _note(self, put: Put) -> None:
        for position, domain in put.touched:
            self.topology.counters[position].add(domain, put.count)
        self._steps.append(put)
        self.log.append(Entry(put.bin, put.batch.number, put.count))
        bins = self.demand_bins.setdefault(put.batch.demand, {})
        bins[put.bin] = bins.get(put.bin, 0) + put.count

    def decided(self, number: int, key: str) -> Domain | None:
        """The domain of a bin, None while it is open or without that label."""
        if key == HOSTNAME_LABEL:
            return number
        if number < len(self.bins):
            return self.topology.domains(key)[number]
        return self.planned.decided(number - len(self.bins), key)

    def planned_domains(self, key: str, inclusion: Inclusion | None) -> frozenset[Domain]:
        """Domains of planned nodes that a spread constraint sees; of one that is not decided, all that it may come to. Not
        for hostnames, of which there may be many (see `planned_hosts`)."""
        asked = (key, inclusion)
        kept = self._domains.get(asked)
        if kept is not None and kept[0] == self.planned.census_version:
            return kept[1]
        known: set[Domain] = set()
        plain = True
        for blueprint, there in self.planned.census.items():
            if not there:
                continue
            alike = self.planned.is_plain(blueprint, (key,), inclusion)
            plain = plain and alike
            indices = self.planned.with_blueprint(blueprint)
            for index in indices[:1] if alike else indices:
                if self.planned.is_included(index, inclusion):
                    known |= self.planned.values(index, key)
        found = frozenset(known)
        if plain:
            self._domains[asked] = (self.planned.census_version, found)
        return found

    def planned_hosts(self, inclusion: Inclusion | None) -> Amounts:
        """Numbers of the bins that are planned nodes which a spread constraint sees."""
        base, count = len(self.bins), self.planned.count
        seen = np.zeros(count, dtype=np.bool_)
        for blueprint, there in self.planned.census.items():
            if not there:
                continue
            alike = self.planned.is_plain(blueprint, (), inclusion)
            members = np.flatnonzero(self.planned.blueprint[:count] == blueprint)
            if alike:
                seen[members] = self.planned.is_included(int(members[0]), inclusion)
            else:
                seen[members] = [self.planned.is_included(int(index), inclusion) for index in members]
        return np.asarray(np.flatnonzero(seen) + base, dtype=np.int64)
