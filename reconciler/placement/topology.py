"""Counts of pods by topology domain, for spread constraints and inter-pod (anti-)affinity. Used by pack.

A counter holds, for one term of somebody's pod spec, how many pods count in each domain: those that the term selects, or,
for anti-affinity seen from the other side, those that have the term. Chunks count like the pods they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.bins import Bins
from reconciler.placement.label_table import Mask
from reconciler.placement.shapes import Needs

Domain = str | int
"""A label value; for hostnames the number of the bin."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Pods by namespace (None: all) and labels; every selector must match. An absent selector matches nothing."""

    namespaces: frozenset[str] | None
    selectors: tuple[LabelSelector | None, ...]

    def selects(self, shape: PodShape) -> bool:
        if self.namespaces is not None and shape.namespace not in self.namespaces:
            return False
        labels = dict(shape.labels)
        return all(selector is not None and selector.matches(labels) for selector in self.selectors)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter counts. owners: pods having this anti-affinity term instead of pods it selects; inclusion: the needs
    of the shape whose spread leaves nodes out by affinity, taints or missing labels, None when no node is left out;
    chunks_only: bound pods do not count (KeepMinimum, which what runs may fill)."""

    key: str
    selections: tuple[Selection, ...]
    owners: bool = False
    inclusion: Inclusion | None = None
    chunks_only: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Which nodes a spread constraint looks at. keys: labels the node must have (all constraints' topology keys)."""

    shape: PodShape
    honour_affinity: bool
    honour_taints: bool
    keys: tuple[str, ...]


@dataclass(slots=True)
class Counter:
    counted: Counted
    counts: dict[Domain, int] = field(default_factory=dict)
    included: Mask | None = None

    def count(self, domain: Domain) -> int:
        return self.counts.get(domain, 0)

    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class SpreadRule:
    counter: int
    key: str
    max_skew: int
    min_domains: int
    counts_itself: bool


@dataclass(frozen=True, slots=True)
class ApartRule:
    """Anti-affinity: no counted pod in the domain. counts_itself: so that at most one chunk goes to each."""

    counter: int
    key: str
    counts_itself: bool


@dataclass(frozen=True, slots=True)
class TogetherRule:
    """Affinity: a counted pod must be in the domain; the first of pods that select themselves may go anywhere."""

    counter: int
    key: str
    counts_itself: bool


Rule = SpreadRule | ApartRule | TogetherRule


class Topology:
    """All counters that some shape asks for. Shapes must be made known (`watch`) before pods are counted (`count_pods`)."""

    def __init__(
        self, bins: Bins, namespaces: Mapping[str, Mapping[str, str]], needs: Callable[[PodShape], Needs]
    ) -> None:
        self._bins = bins
        self._namespaces = namespaces
        self.needs = needs
        self.counters: list[Counter] = []
        self._index: dict[Counted, int] = {}
        self._domains: dict[str, list[Domain | None]] = {}
        self._counts_of: dict[int, tuple[PodShape, tuple[int, ...]]] = {}
        """By identity, since hashing a shape is slow; the shape is kept so that its identity stays its own."""
        self.assumptions: set[str] = set()
        self.expected: dict[int, set[Domain]] = {}
        """Domains by counter that are not there but turned out to come with nodes for other demands (see balance)."""

    def watch(self, shape: PodShape, *, chunks_only: bool = False) -> None:
        self.own_rules(shape, chunks_only=chunks_only)

    def own_rules(self, shape: PodShape, *, chunks_only: bool = False) -> list[Rule]:
        """The rules a shape brings itself: spread that must hold, required affinity and anti-affinity."""
        rules: list[Rule] = []
        hard = [item for item in shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]
        keys = tuple(sorted({item.topology_key for item in hard}))
        for constraint in hard:
            selection = _spread_selection(shape, constraint)
            inclusion = Inclusion(
                shape, constraint.node_affinity_policy == "Honor", constraint.node_taints_policy == "Honor", keys
            )
            counter = self._counter(
                Counted(constraint.topology_key, (selection,), inclusion=inclusion, chunks_only=chunks_only)
            )
            itself = selection.selects(shape)
            minimum = constraint.min_domains or 1
            rules.append(SpreadRule(counter, constraint.topology_key, constraint.max_skew, minimum, itself))
        for term in shape.pod_anti_affinity:
            selection = self.selection(shape, term, generous=True)
            counter = self._counter(Counted(term.topology_key, (selection,), chunks_only=chunks_only, leaving=True))
            for only in (False, True):
                self._counter(_owners(term.topology_key, selection, chunks_only=only))
            rules.append(ApartRule(counter, term.topology_key, selection.selects(shape)))
        together = tuple(self.selection(shape, term, generous=False) for term in shape.pod_affinity)
        for term in shape.pod_affinity:
            counter = self._counter(Counted(term.topology_key, together))
            itself = all(selection.selects(shape) for selection in together)
            rules.append(TogetherRule(counter, term.topology_key, itself))
        return rules

    def others_rules(self, shape: PodShape, *, chunks_only: bool = False) -> list[Rule]:
        """Anti-affinity of pods and chunks that select this shape: it must stay out of their domains."""
        return [
            ApartRule(number, counter.counted.key, counts_itself=False)
            for number, counter in enumerate(self.counters)
            if counter.counted.owners
            and counter.counted.chunks_only == chunks_only
            and all(selection.selects(shape) for selection in counter.counted.selections)
        ]

    def deciding_keys(self, shape: PodShape) -> tuple[str, ...]:
        """Labels (hostname apart) on which a new node for this shape must be decided, since somebody counts it there."""
        keys = {self.counters[number].counted.key for number in self.counts_of(shape)}
        keys |= {rule.key for rule in self.others_rules(shape)}
        return tuple(sorted(keys - {HOSTNAME_LABEL}))

    def selection(self, shape: PodShape, term: PodAffinityTerm, *, generous: bool) -> Selection:
        """generous: when namespaces cannot be told, take all of them rather than too few."""
        selector = _with_label_keys(term.selector, shape, term.match_label_keys, Operator.IN)
        selector = _with_label_keys(selector, shape, term.mismatch_label_keys, Operator.NOT_IN)
        if term.namespace_selector is None:
            return Selection(frozenset(term.namespaces or (shape.namespace,)), (selector,))
        if term.namespace_selector == LabelSelector():
            return Selection(None, (selector,))
        if not self._namespaces:
            self.assumptions.add(
                "labels of namespaces are not known: namespace selectors of pod affinity are not judged"
            )
            return Selection(None if generous else frozenset(term.namespaces), (selector,))
        chosen = {name for name, labels in self._namespaces.items() if term.namespace_selector.matches(labels)}
        return Selection(frozenset(chosen | set(term.namespaces)), (selector,))

    def _counter(self, counted: Counted) -> int:
        if counted not in self._index:
            self._index[counted] = len(self.counters)
            self.counters.append(Counter(counted, included=self._included(counted.inclusion)))
            self._counts_of.clear()
        return self._index[counted]

    def _included(self, inclusion: Inclusion | None) -> Mask | None:
        if inclusion is None:
            return None
        needs = self.needs(inclusion.shape)
        mask = np.ones(len(self._bins), dtype=np.bool_)
        for key in inclusion.keys:
            mask &= np.array([domain is not None for domain in self.domains(key)], dtype=np.bool_)
        if inclusion.honour_affinity:
            mask &= self._bins.fitting(needs)
        return mask & self._bins.tolerated(needs) if inclusion.honour_taints else mask

    def domains(self, key: str) -> list[Domain | None]:
        """The domain of each existing bin, None where the label is absent or not decided."""
        if key not in self._domains:
            known: Iterable[Domain | None] = (
                range(len(self._bins)) if key == HOSTNAME_LABEL else self._bins.table.domains(key)
            )
            self._domains[key] = list(known)
        return self._domains[key]

    def existing_domains(self, rule: SpreadRule) -> set[Domain]:
        """Domains that a spread constraint sees on existing bins, pods there or not, and those that are expected."""
        included = self.counters[rule.counter].included
        assert included is not None
        domains = self.domains(rule.key)
        seen = {domain for number in np.flatnonzero(included).tolist() if (domain := domains[number]) is not None}
        return seen | self._open_domains(rule.key) | self.expected.get(rule.counter, set())

    def _open_domains(self, key: str) -> set[Domain]:
        """Values that bins on their way may come to have where that is not decided."""
        if key == HOSTNAME_LABEL:
            return set()
        _, cells = self._bins.table.column(key)
        return {value for cell in cells if isinstance(cell, tuple) for value in cell if value is not None}

    def counts_of(self, shape: PodShape) -> tuple[int, ...]:
        """Counters in which a pod of this shape counts."""
        if id(shape) not in self._counts_of:
            counters = enumerate(self.counters)
            found = tuple(number for number, counter in counters if self._is_counted(shape, counter.counted))
            self._counts_of[id(shape)] = (shape, found)
        return self._counts_of[id(shape)][1]

    def _is_counted(self, shape: PodShape, counted: Counted) -> bool:
        if not counted.owners:
            return all(selection.selects(shape) for selection in counted.selections)
        return any(
            (self.selection(shape, term, generous=True),) == counted.selections and term.topology_key == counted.key
            for term in shape.pod_anti_affinity
        )

    def count_pods(self) -> None:
        """Watches the anti-affinity of bound pods, then counts every bound pod once."""
        shapes = {id(pod.shape): pod.shape for _, pod in self._bins.pods}
        for shape in shapes.values():
            for term in shape.pod_anti_affinity:
                selection = self.selection(shape, term, generous=True)
                self._counter(_owners(term.topology_key, selection, chunks_only=False))
        if not self.counters:
            return
        counters = {key: self.counts_of(shape) for key, shape in shapes.items()}
        for number, pod in self._bins.pods:
            for index in counters[id(pod.shape)]:
                counted = self.counters[index].counted
                if not counted.chunks_only and (counted.leaving or not pod.deleting):
                    self.count((index,), number, 1)

    def count(self, counters: Iterable[int], number: int, amount: int) -> None:
        """`amount` more pods on an existing bin."""
        for index in counters:
            counter = self.counters[index]
            domain = self.domains(counter.counted.key)[number]
            if domain is not None and (counter.included is None or counter.included[number]):
                counter.counts[domain] = counter.counts.get(domain, 0) + amount


def _owners(key: str, selection: Selection, *, chunks_only: bool) -> Counted:
    return Counted(key, (selection,), owners=True, chunks_only=chunks_only, leaving=True)


def _spread_selection(shape: PodShape, constraint: TopologySpread) -> Selection:
    selector = _with_label_keys(constraint.selector, shape, constraint.match_label_keys, Operator.IN)
    return Selection(frozenset({shape.namespace}), (selector,))


def _with_label_keys(
    selector: LabelSelector | None, shape: PodShape, keys: Iterable[str], operator: Operator
) -> LabelSelector | None:
    """With matchLabelKeys and mismatchLabelKeys: the pod's own values of these labels, as further expressions."""
    own = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (own[key],)) for key in keys if key in own)
    if selector is None or not extra:
        return selector
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))
