"""What has been placed so far: on existing bins and on planned ones. Used by fill, make, spread and pack; attempts are undone by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import HostPort
from reconciler.model.refs import ObjectRef
from reconciler.placement.amounts import ResourceColumns
from reconciler.placement.batches import Batch
from reconciler.placement.bins import Bins
from reconciler.placement.candidates import NoRows, PoolOffers
from reconciler.placement.label_table import Amounts, LabelTable, Mask
from reconciler.placement.pool_limits import PoolLimits
from reconciler.placement.requirements import ABSENT, Requirements
from reconciler.placement.shapes import Needs, tolerated
from reconciler.placement.topology import Domain, Inclusion, Topology


@dataclass(frozen=True, slots=True)
class PlannedBin:
    """A node to be made, still open. rows: what it may be bought as; own: labels that the catalogue does not judge;
    wanted: what its chunks ask of labels, all together; primary: the cheapest row that holds what is in it.

    empty, minimum, running: what its KeepEmpty chunks, KeepMinimum chunks and pending pods take.
    """

    pool: int
    rows: Mask
    own: Requirements
    wanted: Requirements
    empty: Amounts
    minimum: Amounts
    running: Amounts
    ports: tuple[HostPort, ...]
    primary: int
    _possible: dict[str, frozenset[str]] = field(default_factory=dict, init=False, compare=False)

    def possible(self, key: str, table: LabelTable) -> frozenset[str]:
        """Values of a label that the node may come to have."""
        if key not in self._possible:
            if key in table.keys:
                codes, cells = table.column(key)
                seen = (cells[code] for code in np.unique(codes[self.rows]).tolist())
                self._possible[key] = frozenset(cell for cell in seen if isinstance(cell, str))
            else:
                values = self.own.get(key)
                self._possible[key] = values.names if values is not None and not values.complement else frozenset()
        return self._possible[key]

    @property
    def used(self) -> Amounts:
        return np.asarray(self.empty + np.maximum(self.running, self.minimum), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` chunks of a batch on a bin: existing bins by their number, planned ones after them."""

    bin: int
    batch: int
    count: int


@dataclass(frozen=True, slots=True)
class Saved:
    """Everything an attempt may change."""

    empty: Amounts
    minimum: Amounts
    running: Amounts
    ports: dict[int, tuple[HostPort, ...]]
    planned: list[PlannedBin]
    log_length: int
    counts: list[dict[Domain, int]]
    demand_counts: dict[tuple[int, ObjectRef], int]
    limits: dict[str, dict[str, int]]


class State:
    def __init__(
        self, bins: Bins, offers: Sequence[PoolOffers], topology: Topology, limits: PoolLimits, columns: ResourceColumns
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
        self.planned: list[PlannedBin] = []
        self.log: list[Entry] = []
        self.demand_counts: dict[tuple[int, ObjectRef], int] = {}
        self._fullness = bins.fullness()

    @property
    def fullness(self) -> Amounts:
        """Of existing bins, by what ran there at the start, so that the order does not move while placing."""
        return self._fullness

    def save(self) -> Saved:
        return Saved(
            self.empty.copy(),
            self.minimum.copy(),
            self.running.copy(),
            dict(self.ports),
            list(self.planned),
            len(self.log),
            [dict(counter.counts) for counter in self.topology.counters],
            dict(self.demand_counts),
            self.limits.copy(),
        )

    def put_back(self, saved: Saved) -> None:
        self.empty, self.minimum, self.running = saved.empty.copy(), saved.minimum.copy(), saved.running.copy()
        self.ports = dict(saved.ports)
        self.planned = list(saved.planned)
        del self.log[saved.log_length :]
        for counter, counts in zip(self.topology.counters, saved.counts, strict=True):
            counter.counts = dict(counts)
        self.demand_counts = dict(saved.demand_counts)
        self.limits.put_back(saved.limits)

    def free(self, batch: Batch) -> Amounts:
        """Room on each existing bin that counts for this batch (see `Recreation`)."""
        taken = self.minimum if batch.keeps_minimum else np.maximum(self.running, self.minimum)
        return np.asarray(self.bins.room - self.empty - taken, dtype=np.int64)

    def ports_of(self, number: int) -> tuple[HostPort, ...]:
        if number < len(self.bins):
            return self.ports.get(number, ())
        return self.planned[number - len(self.bins)].ports

    def put_existing(self, batch: Batch, number: int, count: int) -> None:
        amounts = batch.needs.request * count
        if batch.pods:
            self.running[number] += amounts
        elif batch.keeps_minimum:
            self.minimum[number] += amounts
        else:
            self.empty[number] += amounts
        if batch.needs.shape.host_ports:
            self.ports[number] = (*self.ports.get(number, ()), *batch.needs.shape.host_ports)
        self.topology.count(self.topology.counts_of(batch.needs.shape), number, count)
        self._note(batch, number, count)

    def put_planned(self, batch: Batch, index: int, planned: PlannedBin, count: int) -> None:
        """`planned` is the bin as it was or is to be; what it holds and its primary are brought up to date here."""
        after = self._with(planned, batch, count)
        if index == len(self.planned):
            self.planned.append(after)
        else:
            self.planned[index] = after
        number = len(self.bins) + index
        for position in self.topology.counts_of(batch.needs.shape):
            counter = self.topology.counters[position]
            domain = self.decided(number, counter.counted.key)
            if domain is not None and self.is_included(after, counter.counted.inclusion):
                counter.counts[domain] = counter.counts.get(domain, 0) + count
        self._note(batch, number, count)

    def _with(self, planned: PlannedBin, batch: Batch, count: int) -> PlannedBin:
        amounts = batch.needs.request * count
        empty, minimum, running = planned.empty, planned.minimum, planned.running
        if batch.pods:
            running = running + amounts
        elif batch.keeps_minimum:
            minimum = minimum + amounts
        else:
            empty = empty + amounts
        offers = self.offers[planned.pool]
        used = empty + np.maximum(running, minimum)
        rows = planned.rows & offers.rows_holding(used)
        candidates = np.flatnonzero(rows)
        primary = int(candidates[np.argmin(offers.prices[candidates])])
        return PlannedBin(
            planned.pool,
            rows,
            planned.own,
            planned.wanted,
            empty,
            minimum,
            running,
            (*planned.ports, *batch.needs.shape.host_ports),
            primary,
        )

    def _note(self, batch: Batch, number: int, count: int) -> None:
        self.log.append(Entry(number, batch.number, count))
        key = (number, batch.demand)
        self.demand_counts[key] = self.demand_counts.get(key, 0) + count

    def decided(self, number: int, key: str) -> Domain | None:
        """The domain of a bin, None while it is open or without that label."""
        if key == HOSTNAME_LABEL:
            return number
        if number < len(self.bins):
            return self.topology.domains(key)[number]
        planned = self.planned[number - len(self.bins)]
        return self.decided_label(planned, key)

    def decided_label(self, planned: PlannedBin, key: str) -> str | None:
        table = self.offers[planned.pool].offerings.table
        if key not in table.keys:
            values = planned.own.get(key)
            return None if values is None else values.single
        possible = planned.possible(key, table)
        if len(possible) != 1 or (planned.rows & table.allowed(key, ABSENT)).any():
            return None
        return next(iter(possible))

    def is_included(self, planned: PlannedBin, inclusion: Inclusion | None) -> bool:
        """Whether a spread constraint looks at a planned bin."""
        if inclusion is None:
            return True
        needs = self.topology.needs(inclusion.shape)
        if any(key != HOSTNAME_LABEL and not self._values(planned, key) for key in inclusion.keys):
            return False
        if inclusion.honour_taints and not tolerated(self.offers[planned.pool].taints, needs.shape.tolerations):
            return False
        return not inclusion.honour_affinity or self._could_be(planned, needs)

    def _could_be(self, planned: PlannedBin, needs: Needs) -> bool:
        offers = self.offers[planned.pool]
        for term in needs.terms:
            rows = offers.rows_for(term.stable)
            if (
                not isinstance(rows, NoRows)
                and (rows & planned.rows).any()
                and planned.own.conflict(term.stable) is None
            ):
                return True
        return False

    def planned_domains(self, key: str, inclusion: Inclusion | None) -> set[Domain]:
        """Domains of planned bins that a spread constraint sees; of one that is not decided, all that it may come to."""
        known: set[Domain] = set()
        for index, planned in enumerate(self.planned):
            if self.is_included(planned, inclusion):
                known |= {len(self.bins) + index} if key == HOSTNAME_LABEL else self._values(planned, key)
        return known

    def _values(self, planned: PlannedBin, key: str) -> frozenset[str]:
        return planned.possible(key, self.offers[planned.pool].offerings.table)
