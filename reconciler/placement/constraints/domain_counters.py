"""Counters of pods by topology domain: which pods each of them counts, and on which nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reconciler.model.pods import PodShape
from reconciler.model.requirements import LabelSelector, Toleration
from reconciler.placement.amounts import Amounts
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import NodeTerm

Domain = str | int
"""A label value; for hostnames the number of the bin, or of the first that has its hostname (see hostnames)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Pods by namespace (None: all) and labels; every selector must match. An absent selector matches nothing."""

    namespaces: frozenset[str] | None
    selectors: tuple[LabelSelector | None, ...]

    def selects(self, shape: PodShape) -> bool:
        return self.selects_labels(shape.namespace, dict(shape.labels))

    def selects_labels(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return all(selector is not None and selector.matches(labels) for selector in self.selectors)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter counts.

    owners: pods that have this anti-affinity term, instead of pods that it selects.
    inclusion: which nodes a spread constraint looks at, by affinity, taints and labels; None for all.
    chunks_only: bound pods do not count, since what runs may fill a KeepMinimum buffer.
    leaving: pods that are being deleted count too.
    """

    key: str
    selections: tuple[Selection, ...]
    owners: bool = False
    inclusion: Inclusion | None = None
    chunks_only: bool = False
    leaving: bool = False

    @property
    def anywhere(self) -> tuple[object, ...]:
        """The same on whatever nodes, and whether bound pods count or not. Two counters have it in common on nodes that both look
        at and where nothing runs yet. To compare with."""
        return (self.key, self.selections, self.owners, self.leaving)


@dataclass(frozen=True, slots=True, eq=False)
class Inclusion:
    """Which nodes a spread constraint looks at. `Topology` has one object for all that are equal, so that what follows from it can
    be kept by identity. terms: the shape's, where affinity is honoured (else None); tolerations:
    where taints are; keys: labels the node must have (all constraints' topology keys)."""

    terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...] | None
    keys: tuple[str, ...]


class Hosts:
    """Counts by bin of every counter on hostnames: a row is a counter, a column a bin (existing bins, then planned ones). Bins that
    share a hostname all have what counts on any of them. sharing: by bin, itself among them; empty where no two do."""

    def __init__(self, sharing: Mapping[int, Amounts]) -> None:
        self.sharing = sharing
        self.table: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self._rows = 0

    def add_row(self) -> int:
        self._rows += 1
        if self._rows > len(self.table):
            self._grow(max(8, 2 * len(self.table)), self.table.shape[1])
        return self._rows - 1

    def reach(self, columns: int) -> None:
        """Makes sure that there are that many columns."""
        if columns > self.table.shape[1]:
            self._grow(len(self.table), max(64, 2 * columns))

    def _grow(self, rows: int, columns: int) -> None:
        larger = np.zeros((rows, columns), dtype=np.int64)
        larger[: self.table.shape[0], : self.table.shape[1]] = self.table
        self.table = larger


@dataclass(slots=True)
class Counter:
    """counts: by label value, for other keys than the hostname; host_row: the row of `hosts` for the hostname, else -1."""

    counted: Counted
    hosts: Hosts
    host_row: int = -1
    counts: dict[Domain, int] = field(default_factory=dict)
    included: Mask | None = None
    total: int = 0

    def count(self, domain: Domain) -> int:
        if self.host_row < 0:
            return self.counts.get(domain, 0)
        return int(self.hosts.table[self.host_row, domain]) if isinstance(domain, int) and domain >= 0 else 0

    def counts_in(self, domains: Sequence[Domain]) -> dict[Domain, int]:
        """The same for several."""
        if self.host_row < 0:
            return {domain: self.counts.get(domain, 0) for domain in domains}
        counts: list[int] = self.hosts.table[self.host_row, np.array(domains, dtype=np.int64)].tolist()
        return dict(zip(domains, counts, strict=True))

    def add(self, domain: Domain, amount: int) -> None:
        """`amount` may be negative, when an attempt is undone."""
        self.total += amount
        if self.host_row < 0:
            self.counts[domain] = self.counts.get(domain, 0) + amount
        else:
            assert isinstance(domain, int)
            self.hosts.table[self.host_row, self.hosts.sharing.get(domain, domain)] += amount
