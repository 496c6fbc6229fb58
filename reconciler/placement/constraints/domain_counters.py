"""Counters of pods by topology domain: which pods each of them counts, and on which nodes; and what all rules that go by them have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reconciler.model.pods import PodShape
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration
from reconciler.placement.batches import NodeTerm
from reconciler.placement.constraints.node_rules import NodeAffinity, TaintToleration
from reconciler.placement.loops.planned_nodes import allowed
from reconciler.placement.requirements import LabelTable, Mask

Domain = str | int
"""A label value; for hostnames the number of the bin."""
EACH_NODE = ""
"""The key of a counter that counts on each node by itself, whatever its labels."""


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


def with_label_keys(
    selector: LabelSelector | None, shape: PodShape, match: Iterable[str], mismatch: Iterable[str] = ()
) -> LabelSelector | None:
    """The selector with matchLabelKeys and mismatchLabelKeys: the pod's own values of these labels, as further expressions."""
    if selector is None or not (match or mismatch):
        return selector
    own = dict(shape.labels)
    extra = [Requirement(key, Operator.IN, (own[key],)) for key in match if key in own]
    extra += [Requirement(key, Operator.NOT_IN, (own[key],)) for key in mismatch if key in own]
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra)) if extra else selector


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter counts.

    owners: counts the pods that have this term, instead of those that it selects. It is required anti-affinity, or with a weight
    what attracts pods (below 0: keeps them away): a preferred term, or required affinity.
    inclusion: which nodes a spread constraint looks at, by affinity, taints and labels; None for all.
    chunks_only: leaves bound pods out, since running pods may be what fills a KeepMinimum buffer.
    leaving: counts pods that are being deleted too.
    """

    key: str
    selections: tuple[Selection, ...]
    owners: bool = False
    inclusion: Inclusion | None = None
    chunks_only: bool = False
    leaving: bool = False
    weight: int = 0

    @property
    def anywhere(self) -> tuple[object, ...]:
        """A key to compare counters by: what they count, whichever nodes they look at, and whether or not bound pods count.

        Counters with the same key agree on every node that both look at, as long as nothing runs there."""
        return (self.key, self.selections, self.owners, self.leaving)


@dataclass(frozen=True, slots=True, eq=False)
class Inclusion:
    """Which nodes a spread constraint looks at. `Topology` keeps one object for equal values, so that caches can go by identity.

    terms: the shape's node terms, None unless nodeAffinityPolicy is Honor. tolerations: the same for nodeTaintsPolicy.
    keys: labels the node must have (the topology keys of all constraints)."""

    terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...] | None
    keys: tuple[str, ...]

    def looked_at(
        self, labels: LabelTable, affinity: NodeAffinity, taints: TaintToleration, *, without: str = ""
    ) -> Mask:
        """By node, whether the constraint looks at it. without: a label that all of them count as having."""
        mask = np.ones(len(labels), dtype=np.bool_)
        for key in self.keys:
            if key != without:
                mask &= labels.having(key)
        if self.terms is not None:
            mask &= affinity.meeting(self.terms)
        return mask if self.tolerations is None else mask & taints.tolerating(self.tolerations)


class Counts:
    """Counts of counters by domain. Rows are counters. Columns are bins (existing ones, then planned ones) for counters on the
    hostname, else the numbers of a label's values."""

    def __init__(self) -> None:
        self.table: NDArray[np.int64] = np.zeros((0, 8), dtype=np.int64)
        self._rows = 0

    def add_row(self) -> int:
        self._rows += 1
        if self._rows > len(self.table):
            self._grow(max(8, 2 * len(self.table)), self.table.shape[1])
        return self._rows - 1

    def reach(self, columns: int) -> None:
        """Extends the array to at least that many columns."""
        if columns > self.table.shape[1]:
            self._grow(len(self.table), max(64, 2 * columns))

    def column_of(self, domain: Domain, numbers: dict[Domain, int]) -> int:
        """The column of a label's value. numbers: the columns of those that are known, to be written to."""
        column = numbers.setdefault(domain, len(numbers))
        self.reach(column + 1)
        return column

    def _grow(self, rows: int, columns: int) -> None:
        larger = np.zeros((rows, columns), dtype=np.int64)
        larger[: self.table.shape[0], : self.table.shape[1]] = self.table
        self.table = larger


@dataclass(slots=True)
class Counter:
    """counts: the table in which it has a row. numbers: by value of its label, the column; None for the hostname. alike: one number for all
    that count the same (see `Counted.anywhere`)."""

    counted: Counted
    counts: Counts
    row: int
    numbers: dict[Domain, int] | None
    alike: int
    included: Mask | None = None

    @property
    def total(self) -> int:
        """How many pods count in all domains together."""
        return int(self.counts.table[self.row].sum())

    @property
    def on_hosts(self) -> bool:
        return self.numbers is None

    def named(self, columns: Iterable[int]) -> list[Domain]:
        """The domains that have these columns."""
        if self.numbers is None:
            return list(columns)
        names = list(self.numbers)
        return [names[column] for column in columns]

    def count(self, domain: Domain) -> int:
        column = domain if self.numbers is None else self.numbers.get(domain, -1)
        return int(self.counts.table[self.row, column]) if isinstance(column, int) and column >= 0 else 0


@dataclass(frozen=True, slots=True)
class TopologyRule(ABC):
    """A rule between pods: which counter decides, and how. What each kind of rule is, is said in its plugin's file.

    counter: its number. key: the label whose values are domains. counts_itself: whether pods under the rule count in the counter too.
    """

    counter: int
    key: str
    counts_itself: bool

    apart: ClassVar[bool] = False
    """Whether pods may come where none counts, so also to a node without the label, which has no domain."""
    by_minimum: ClassVar[bool] = False
    """Whether the bound goes by the fewest pods that count in any domain."""

    @property
    @abstractmethod
    def code(self) -> int:
        """Of `loops/planned_nodes.allowed`, which says how many more may come."""

    @property
    def numbers(self) -> tuple[int, int]:
        """MaxSkew and minDomains; 0 where the rule has none."""
        return 0, 0

    @property
    def uses_up(self) -> bool:
        """Whether a pod that comes to a domain leaves less of it to the next one."""
        return self.counts_itself

    def row(self, counter: int, key: int, bound: int = 0) -> tuple[int, ...]:
        """As the loops take it. counter, key: as they number these. bound: see `BOUND`."""
        return (self.code, counter, key, *self.numbers, self.apart, self.counts_itself, bound)

    def least(self, counts: Iterable[int], domains: int) -> int:
        """The global minimum. counts: those of the domains. domains: how many there are."""
        del counts, domains
        return 0

    def bound(self, least: int) -> int:
        """The most pods that may count in a domain, given the global minimum."""
        del least
        return 0

    def allowed(self, counted: int, bound: int) -> int:
        """How many more pods may come to a domain where so many count."""
        return allowed(self.code, bound, counted)
