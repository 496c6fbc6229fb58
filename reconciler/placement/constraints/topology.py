"""Counts of pods by topology domain, for spread constraints and inter-pod (anti-)affinity.

A counter belongs to one term of some pod spec. It holds, by domain, how many pods the term selects; for anti-affinity of other
pods, how many pods have the term. Chunks count like the pods they stand for. Shapes that differ only in their requests are under
the same rules, so what is computed for one is cached for its whole equivalence class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration
from reconciler.placement.amounts import Amounts
from reconciler.placement.constraints.constraint_set import ConstraintSet, EquivalenceClass, Rule, constraint_set_of
from reconciler.placement.constraints.domain_counters import Counted, Counter, Domain, Hosts, Inclusion, Selection
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import KnownNeeds, Needs, NodeTerm
from reconciler.placement.nodes.existing import Bins, LocatedGroup
from reconciler.placement.requirements import Requirements

_InclusionParts = tuple[tuple[NodeTerm, ...] | None, tuple[Toleration, ...] | None, tuple[str, ...]]
"""The fields of `Inclusion`: terms, tolerations and keys."""


class Topology:
    """All counters that some shape asks for. `watch` must be called with every shape before `count_pods`."""

    def __init__(self, bins: Bins, namespaces: Mapping[str, Mapping[str, str]], needs: KnownNeeds) -> None:
        self._bins = bins
        self._namespaces = namespaces
        self._needs = needs
        self.counters: list[Counter] = []
        self.hosts = Hosts(bins.hostnames.sharing)
        self.hosts.reach(len(bins))
        self._own: dict[tuple[int, bool], tuple[Rule, ...]] = {}
        """Cache of shapes' own rules, by number of equivalence class and chunks_only."""
        self._equivalence_classes: dict[int, EquivalenceClass] = {}
        """Cache by number of the class. Cleared with each new counter, which may count these shapes or keep them off."""
        self._constraint_sets: dict[tuple[int, bool], ConstraintSet] = {}
        """Cache by number of the class and chunks_only, cleared like the one above."""
        self._existing: dict[int, set[Domain]] = {}
        self._index: dict[Counted, int] = {}
        self._inclusions: dict[_InclusionParts, Inclusion] = {}
        self._domains: dict[str, list[Domain | None]] = {}
        self._owners: list[int] = []
        """Numbers of the counters that count pods with an anti-affinity term."""
        self._selecting_known: dict[tuple[str, tuple[tuple[str, str], ...]], list[Any]] = {}
        """Cache by namespace and labels: how many counters were looked at, and which of them select such pods."""
        self._others_known: dict[tuple[str, tuple[tuple[str, str], ...], bool], tuple[Rule, ...]] = {}
        """Cache by namespace, labels and chunks_only: other pods' rules for such pods. Cleared like the ones above."""
        self.assumptions: set[str] = set()
        self.expected: dict[int, set[Domain]] = {}
        """By counter, domains without a node so far, in which other demands will get nodes (see `domains/balance.py`)."""

    @property
    def looks_at_hosts(self) -> bool:
        """Whether any rule is on the hostname."""
        return any(counter.host_row >= 0 for counter in self.counters)

    def watch(self, needs: Needs, *, chunks_only: bool = False) -> None:
        self.own_rules(needs, chunks_only=chunks_only)

    def _equivalence_class_of(self, number: int, shape: PodShape) -> EquivalenceClass:
        """The cache that all shapes of its equivalence class share."""
        equivalence_class = self._equivalence_classes.get(number)
        if equivalence_class is None:
            equivalence_class = self._equivalence_classes[number] = EquivalenceClass(shape)
        return equivalence_class

    def own_rules(self, needs: Needs, *, chunks_only: bool = False) -> tuple[Rule, ...]:
        """The shape's own rules: spread with DoNotSchedule, required affinity and anti-affinity."""
        key = (needs.equivalence_class, chunks_only)
        rules = self._own.get(key)
        if rules is None:
            rules = self._own[key] = tuple(self._own_rules(needs, chunks_only=chunks_only))
        return rules

    def _own_rules(self, needs: Needs, *, chunks_only: bool) -> list[Rule]:
        shape = needs.shape
        rules: list[Rule] = []
        hard = [item for item in shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]
        keys = tuple(sorted({item.topology_key for item in hard}))
        for constraint in hard:
            selection = _spread_selection(shape, constraint)
            inclusion = self._inclusion(
                needs.affinity_terms if constraint.node_affinity_policy == "Honor" else None,
                shape.tolerations if constraint.node_taints_policy == "Honor" else None,
                keys,
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
            rules.append(AntiAffinityRule(counter, term.topology_key, selection.selects(shape)))
        together = tuple(self.selection(shape, term, generous=False) for term in shape.pod_affinity)
        for term in shape.pod_affinity:
            counter = self._counter(Counted(term.topology_key, together))
            itself = all(selection.selects(shape) for selection in together)
            rules.append(AffinityRule(counter, term.topology_key, itself))
        return rules

    def _inclusion(self, *parts: *_InclusionParts) -> Inclusion:
        known = self._inclusions.get(parts)
        if known is None:
            known = self._inclusions[parts] = Inclusion(*parts)
        return known

    def _others_rules(self, shape: PodShape, *, chunks_only: bool) -> tuple[Rule, ...]:
        """Anti-affinity of other pods and chunks that selects this shape, which must stay out of their domains."""
        key = (shape.namespace, shape.labels, chunks_only)
        rules = self._others_known.get(key)
        if rules is None:
            rules = self._others_known[key] = tuple(
                AntiAffinityRule(number, counted.key, counts_itself=False)
                for number in self._selecting(shape)
                if (counted := self.counters[number].counted).owners and counted.chunks_only == chunks_only
            )
        return rules

    def _selecting(self, shape: PodShape) -> list[int]:
        """The counters that select the shape. This depends on its namespace and labels alone, so it is cached by these."""
        known = self._selecting_known.setdefault((shape.namespace, shape.labels), [0, []])
        labels = dict(shape.labels)
        for number in range(known[0], len(self.counters)):
            for selection in self.counters[number].counted.selections:
                if not selection.selects_labels(shape.namespace, labels):
                    break
            else:
                known[1].append(number)
        known[0] = len(self.counters)
        found: list[int] = known[1]
        return found

    def constraints(self, needs: Needs, *, chunks_only: bool) -> ConstraintSet:
        """All rules that a shape is under: its own, and those of pods that keep it off."""
        key = (needs.equivalence_class, chunks_only)
        constraints = self._constraint_sets.get(key)
        if constraints is None:
            own = self.own_rules(needs, chunks_only=chunks_only)
            others = self._others_rules(needs.shape, chunks_only=chunks_only)
            constraints = self._constraint_sets[key] = constraint_set_of((*own, *others), self.deciding_keys(needs))
        return constraints

    def nobody_yet(self, affinity: Iterable[AffinityRule]) -> bool:
        """Whether a chunk has affinity only to pods like itself, and there are none yet. True without any affinity."""
        return all(rule.counts_itself and not self.counters[rule.counter].total for rule in affinity)

    def bootstrapping(self, affinity: Sequence[AffinityRule]) -> tuple[AffinityRule, ...]:
        """The self-affinity bootstrap: the rules that do not apply to the first of pods with affinity to each other.

        As in kube-scheduler, these are all of a pod's affinity terms or none."""
        return tuple(affinity) if self.nobody_yet(affinity) else ()

    def deciding_keys(self, needs: Needs) -> tuple[str, ...]:
        """Labels other than the hostname that must be decided for a new node of this shape, since some rule counts by them."""
        equivalence_class = self._equivalence_class_of(needs.equivalence_class, needs.shape)
        if equivalence_class.deciding_keys is None:
            keys = {self.counters[number].counted.key for number in self.counts_of(needs)}
            keys |= {rule.key for rule in self._others_rules(needs.shape, chunks_only=False)}
            equivalence_class.deciding_keys = tuple(sorted(keys - {HOSTNAME_LABEL}))
        return equivalence_class.deciding_keys

    def selection(self, shape: PodShape, term: PodAffinityTerm, *, generous: bool) -> Selection:
        """The pods that the term selects. generous: where namespaces are not known, take all of them rather than none."""
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
        fresh = len(self.counters)
        number = self._index.setdefault(counted, fresh)
        if number == fresh:
            if counted.owners:
                self._owners.append(number)
            row = self.hosts.add_row() if counted.key == HOSTNAME_LABEL else -1
            self.counters.append(Counter(counted, self.hosts, row, included=self._included(counted.inclusion)))
            self._equivalence_classes.clear()
            self._constraint_sets.clear()
            self._others_known.clear()
        return number

    def _included(self, inclusion: Inclusion | None) -> Mask | None:
        if inclusion is None:
            return None
        mask = np.ones(len(self._bins), dtype=np.bool_)
        for key in inclusion.keys:
            mask &= self._bins.table.having(key) if key != HOSTNAME_LABEL else self._bins.hostnames.having
        if inclusion.terms is not None:
            mask &= self._bins.node_affinity.meeting(inclusion.terms)
        return (
            mask
            if inclusion.tolerations is None
            else mask & self._bins.taint_toleration.tolerating(inclusion.tolerations)
        )

    def domains(self, key: str) -> list[Domain | None]:
        """The domain of each existing bin; None where the label is absent or undecided."""
        if key not in self._domains:
            known: Iterable[Domain | None] = (
                self._bins.hostnames.domains if key == HOSTNAME_LABEL else self._bins.table.domains(key)
            )
            self._domains[key] = list(known)
        return self._domains[key]

    def existing_domains(self, rule: SpreadRule) -> set[Domain]:
        """Domains that a spread constraint looks at: those of existing bins, with or without pods, and those expected."""
        if rule.counter not in self._existing:
            included = self.counters[rule.counter].included
            assert included is not None
            domains = self.domains(rule.key)
            seen = {domain for number in np.flatnonzero(included).tolist() if (domain := domains[number]) is not None}
            self._existing[rule.counter] = seen | self._open_domains(rule.key, self.counters[rule.counter].counted)
        return self._existing[rule.counter] | self.expected.get(rule.counter, set())

    def _open_domains(self, key: str, counted: Counted) -> set[Domain]:
        """The possible values of bins whose label is undecided, where the constraint may look at those bins."""
        inclusion = counted.inclusion
        if key == HOSTNAME_LABEL or inclusion is None:
            return set()
        codes, cells = self._bins.table.column(key)
        open_cells = [(codes == code, cell) for code, cell in enumerate(cells) if isinstance(cell, tuple)]
        if not open_cells:
            return set()
        looked_at = np.ones(len(self._bins), dtype=np.bool_)
        if inclusion.tolerations is not None:
            looked_at = self._bins.taint_toleration.tolerating(inclusion.tolerations)
        found: set[Domain] = set()
        for wanted in [Requirements()] if inclusion.terms is None else [term.literal for term in inclusion.terms]:
            possible = looked_at & self._bins.table.matching(wanted.without(frozenset({key})), possibly=True)
            asked = wanted.get(key)
            for rows, cell in open_cells:
                if (possible & rows).any():
                    found |= {value for value in cell if value is not None and (asked is None or asked.allows(value))}
        return found

    def counts_of(self, needs: Needs) -> tuple[int, ...]:
        """The counters in which a pod of this shape counts."""
        return self._counts_of(self._equivalence_class_of(needs.equivalence_class, needs.shape))

    def _counts_of(self, equivalence_class: EquivalenceClass) -> tuple[int, ...]:
        if equivalence_class.counts_of is None:
            shape = equivalence_class.shape
            terms = shape.pod_anti_affinity
            owned = {(term.topology_key, self.selection(shape, term, generous=True)) for term in terms}
            selecting = [item for item in self._selecting(shape) if not self.counters[item].counted.owners]
            owns = (
                [number for number in self._owners if _is_owned(self.counters[number].counted, owned)] if owned else []
            )
            equivalence_class.counts_of = tuple(sorted(selecting + owns))
        return equivalence_class.counts_of

    def count_pods(self) -> None:
        """Adds counters for the anti-affinity of bound pods, then counts every bound pod once."""
        for shape in {
            id(placed.bound_group.shape): placed.bound_group.shape for placed in self._bins.bound_groups
        }.values():
            for term in shape.pod_anti_affinity:
                selection = self.selection(shape, term, generous=True)
                self._counter(_owners(term.topology_key, selection, chunks_only=False))
        if not self.counters:
            return
        for placed in self._bins.bound_groups:
            shape = placed.bound_group.shape
            for index in self._counts_of(
                self._equivalence_class_of(self._needs.equivalence_classes.number(shape), shape)
            ):
                counted = self.counters[index].counted
                if not counted.chunks_only and (counted.leaving or not placed.bound_group.deleting):
                    self._count(self.counters[index], placed)

    def _count(self, counter: Counter, placed: LocatedGroup) -> None:
        rows, counts = placed.rows, placed.counts
        if counter.included is not None:
            rows, counts = rows[counter.included[rows]], counts[counter.included[rows]]
        if counter.host_row >= 0:
            self._count_on_hosts(counter, rows, counts)
            return
        codes, cells = self._bins.table.column(counter.counted.key)
        by_cell = np.zeros(len(cells), dtype=np.int64)
        np.add.at(by_cell, codes[rows], counts)
        for cell, amount in zip(cells, by_cell.tolist(), strict=True):
            if amount and isinstance(cell, str):
                counter.add(cell, amount)

    def _count_on_hosts(self, counter: Counter, rows: NDArray[np.intp], counts: Amounts) -> None:
        hostnames = self._bins.hostnames
        if hostnames.missing is not None:
            named = ~hostnames.missing[rows]
            rows, counts = rows[named], counts[named]
        if hostnames.sharing:
            for number, amount in zip(rows.tolist(), counts.tolist(), strict=True):
                counter.add(number, amount)
            return
        counter.total += int(counts.sum())
        self.hosts.table[counter.host_row, rows] += counts

    def counted_domain(self, counter: int, number: int) -> Domain | None:
        """The domain in which a pod on an existing bin counts; None where it does not count."""
        item = self.counters[counter]
        return self.domains(item.counted.key)[number] if item.included is None or item.included[number] else None


def _is_owned(counted: Counted, owned: set[tuple[str, Selection]]) -> bool:
    """Whether it is one of these anti-affinity terms of a shape, each a topology key and a selection."""
    return (counted.key, counted.selections[0]) in owned


def _owners(key: str, selection: Selection, *, chunks_only: bool) -> Counted:
    return Counted(key, (selection,), owners=True, chunks_only=chunks_only, leaving=True)


def _spread_selection(shape: PodShape, constraint: TopologySpread) -> Selection:
    selector = _with_label_keys(constraint.selector, shape, constraint.match_label_keys, Operator.IN)
    return Selection(frozenset({shape.namespace}), (selector,))


def _with_label_keys(
    selector: LabelSelector | None, shape: PodShape, keys: Iterable[str], operator: Operator
) -> LabelSelector | None:
    """The selector with matchLabelKeys and mismatchLabelKeys: the pod's own values of these labels, as further expressions."""
    own = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (own[key],)) for key in keys if key in own)
    if selector is None or not extra:
        return selector
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))
