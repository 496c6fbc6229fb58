"""The rules between pods that shapes are under, and counts of pods by topology domain, by which they are judged.

A counter belongs to one term of some pod spec. It holds, by domain, how many pods the term selects; for anti-affinity of other
pods, how many pods have the term. Each plugin's file says which counters a shape's terms need. In `RuleTable` they get numbers, so that
equal ones are one; kube-scheduler's model goes by it too. `Topology` keeps what they count while chunks are placed, which count like the
pods they stand for. Shapes that differ only in their requests are under the same rules, so what is computed for one is cached for its whole
equivalence class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.model.requirements import LabelSelector, Toleration
from reconciler.placement.arrays import Flags, Numbers
from reconciler.placement.batches import KnownNeeds, Needs, NodeTerm
from reconciler.placement.constraints.domain_counters import (
    Counted,
    Counter,
    Counts,
    Domain,
    Inclusion,
    Selection,
    TopologyRule,
    with_label_keys,
)
from reconciler.placement.constraints.pod_rules import (
    AffinityRule,
    AntiAffinityRule,
    SoftSpread,
    affinity_of,
    attracted,
    attracting,
    own_rules,
    owned,
    soft_spread,
    spread_of,
    spread_rules,
)
from reconciler.placement.nodes.existing import Bins
from reconciler.placement.requirements import Requirements


class ConstraintSet:
    """The rules of one shape, grouped as placing needs them. Never modified."""

    def __init__(self, rules: tuple[TopologyRule, ...], counted_by: Iterable[str]) -> None:
        """rules: the shape's own, and those of pods that keep it off. counted_by: the labels by which these chunks count in some rule."""
        self.rules = rules
        self.on_labels = tuple(rule for rule in rules if rule.key != HOSTNAME_LABEL)
        self.on_hosts = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL)
        self.keys = tuple(sorted({*counted_by, *(rule.key for rule in self.on_labels)} - {HOSTNAME_LABEL}))
        """Labels of the rules other than the hostname, and of other pods' rules that count these chunks."""
        self.spread, self.host_spread = spread_of(rules), spread_of(self.on_hosts)
        self.affinity, self.host_affinity = affinity_of(self.on_labels), affinity_of(self.on_hosts)
        """The first on labels other than the hostname."""
        self.shared = any(rule.uses_up for rule in self.on_labels)
        """Whether placing one of these chunks changes where the next may go."""
        self.by_domain = not all(rule.apart for rule in rules)
        """Whether any rule depends on more than whether some pod counts in the domain."""


_InclusionParts = tuple[tuple[NodeTerm, ...] | None, tuple[Toleration, ...] | None, tuple[str, ...]]
"""The fields of `Inclusion`: terms, tolerations and keys."""


class RuleTable:
    """Numbers counters as shapes ask for them. counted: by number, what the counter counts. assumptions: what was not judged."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces = namespaces
        self.counted: list[Counted] = []
        self.assumptions: set[str] = set()
        self._index: dict[Counted, int] = {}
        self._inclusions: dict[_InclusionParts, Inclusion] = {}
        self._by_label: dict[tuple[str, str] | None, list[int]] = {}
        """Counters by a label that all pods which they select have; None where they name none."""
        self._selecting: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, list[int]]] = {}
        """Cache by namespace and labels: how many counters were looked at, and which of them select such pods."""

    def number(self, counted: Counted) -> int:
        fresh = len(self.counted)
        number = self._index.setdefault(counted, fresh)
        if number == fresh:
            self.counted.append(counted)
            required = [
                label for item in counted.selections for each in item.selectors if each for label in each.match_labels
            ]
            rarest = min(required, key=lambda label: len(self._by_label.get(label, ())), default=None)
            self._by_label.setdefault(rarest, []).append(number)
        return number

    def own_rules(self, needs: Needs, *, chunks_only: bool = False) -> list[TopologyRule]:
        """The shape's own rules: spread with DoNotSchedule, required affinity and anti-affinity."""
        between = own_rules(needs.shape, self.number, self.selection, chunks_only=chunks_only)
        return [*spread_rules(needs, self.number, self._inclusion, chunks_only=chunks_only), *between]

    def others_rules(self, shape: PodShape, *, chunks_only: bool = False) -> list[TopologyRule]:
        """Anti-affinity of other pods and chunks that selects this shape, which must stay out of their domains."""
        return [
            AntiAffinityRule(number, counted.key, counts_itself=False)
            for number in self.selecting(shape)
            if (counted := self.counted[number]).owners and not counted.weight and counted.chunks_only == chunks_only
        ]

    def soft_spread(self, needs: Needs, *, by_default: bool) -> list[SoftSpread]:
        """The constraints that nodes are scored by. by_default: see `soft_spread`."""
        return soft_spread(needs, self.number, self._inclusion, by_default=by_default)

    def attractions(self, shape: PodShape) -> list[tuple[int, int]]:
        """The counters that nodes are scored by for such a pod, each with its weight: its own terms, and others' that select it."""
        others = [(number, self.counted[number].weight) for number in self.selecting(shape)]
        return attracted(shape, self.number, self.selection) + [item for item in others if item[1]]

    def watch_owners(self, shape: PodShape) -> None:
        """Adds the counters of pods that keep others off, or attract them, as this shape does."""
        for counted in (*owned(shape, self.selection), *attracting(shape, self.selection)):
            self.number(counted)

    def counts_of(self, shape: PodShape) -> list[int]:
        """The counters in which a pod of this shape counts, one of them as often as it has the term."""
        selecting = [number for number in self.selecting(shape) if not self.counted[number].owners]
        terms = [*owned(shape, self.selection), *owned(shape, self.selection, chunks_only=True)]
        terms += attracting(shape, self.selection)
        return sorted(selecting + [self._index[counted] for counted in terms if counted in self._index])

    def selecting(self, shape: PodShape) -> list[int]:
        """The counters that select the shape. This depends on its namespace and labels alone, so it is cached by these."""
        seen, found = self._selecting.get((shape.namespace, shape.labels), (0, []))
        if seen < len(self.counted):
            labels = dict(shape.labels)
            numbers = sorted(number for label in (None, *shape.labels) for number in self._by_label.get(label, ()))
            found = [
                number
                for number in numbers
                if all(item.selects_labels(shape.namespace, labels) for item in self.counted[number].selections)
            ]
            self._selecting[shape.namespace, shape.labels] = (len(self.counted), found)
        return found

    def selection(self, shape: PodShape, term: PodAffinityTerm, generous: bool) -> Selection:  # noqa: FBT001 - see `Selecting`
        """The pods that the term selects. generous: where namespaces are not known, take all of them rather than none."""
        selector = with_label_keys(term.selector, shape, term.match_label_keys, term.mismatch_label_keys)
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

    def _inclusion(self, *parts: *_InclusionParts) -> Inclusion:
        known = self._inclusions.get(parts)
        if known is None:
            known = self._inclusions[parts] = Inclusion(*parts)
        return known


class Topology:
    """All counters that some shape asks for. `own_rules` must be called with every shape before `count_pods`."""

    def __init__(self, bins: Bins, namespaces: Mapping[str, Mapping[str, str]], needs: KnownNeeds) -> None:
        self._bins = bins
        self._table = RuleTable(namespaces)
        self._needs = needs
        self.counters: list[Counter] = []
        self.hosts, self.labels = Counts(), Counts()
        self.numbers: dict[str, dict[Domain, int]] = {}
        """By label, the column in `labels` of each of its values."""
        self.hosts.reach(len(bins))
        self._own: dict[tuple[int, bool], tuple[TopologyRule, ...]] = {}
        """Cache of shapes' own rules, by number of equivalence class and chunks_only."""
        self._counted_in: dict[int, tuple[int, ...]] = {}
        """Cache by number of the class. Cleared with each new counter, which may count these shapes or keep them off."""
        self._constraint_sets: dict[tuple[int, bool], ConstraintSet] = {}
        """Cache by number of the class and chunks_only, cleared like the one above."""
        self._alike: dict[tuple[object, ...], int] = {}
        self._columns: dict[int, Numbers] = {}
        self.assumptions = self._table.assumptions
        self.seen: Flags = np.zeros((0, 0, 0), dtype=np.bool_)
        """What spread constraints on labels other than the hostname see, shape (counters on labels, 2 + templates, domains): whether an existing bin is in the domain, or a node is
        expected there; and then whether nodes of each template are, or could be."""
        self.expected: set[int] = set()
        """Counters of spread constraints for which nodes are expected that other demands will get."""

    def own_rules(self, needs: Needs, *, chunks_only: bool = False) -> tuple[TopologyRule, ...]:
        """The shape's own rules: spread with DoNotSchedule, required affinity and anti-affinity."""
        key = (needs.equivalence_class, chunks_only)
        rules = self._own.get(key)
        if rules is None:
            rules = self._own[key] = tuple(self._table.own_rules(needs, chunks_only=chunks_only))
            both = (owned(needs.shape, self._table.selection, chunks_only=only) for only in (False, True))
            self._ask_for(counted for terms in both for counted in terms)
        return rules

    def constraints(self, needs: Needs, *, chunks_only: bool) -> ConstraintSet:
        """All rules that a shape is under: its own, and those of pods that keep it off."""
        key = (needs.equivalence_class, chunks_only)
        constraints = self._constraint_sets.get(key)
        if constraints is None:
            own = self.own_rules(needs, chunks_only=chunks_only)
            others = self._table.others_rules(needs.shape, chunks_only=chunks_only)
            counted_by = {self.counters[number].counted.key for number in self.counts_of(needs)}
            if chunks_only:
                counted_by |= {rule.key for rule in self._table.others_rules(needs.shape)}
            constraints = self._constraint_sets[key] = ConstraintSet((*own, *others), counted_by)
        return constraints

    def nobody_yet(self, affinity: Iterable[AffinityRule]) -> bool:
        """Whether a chunk has affinity only to pods like itself, and there are none yet. True without any affinity."""
        return all(rule.counts_itself and not self.counters[rule.counter].total for rule in affinity)

    def bootstrapping(self, affinity: Sequence[AffinityRule]) -> tuple[AffinityRule, ...]:
        """The self-affinity bootstrap: the rules that do not apply to the first of pods with affinity to each other.

        As in kube-scheduler, these are all of a pod's affinity terms or none."""
        return tuple(affinity) if self.nobody_yet(affinity) else ()

    def _ask_for(self, more: Iterable[Counted]) -> None:
        """Makes a counter for each that the table has numbered, and for more."""
        for counted in more:
            self._table.number(counted)
        for counted in self._table.counted[len(self.counters) :]:
            on_hosts = counted.key == HOSTNAME_LABEL
            counts = self.hosts if on_hosts else self.labels
            numbers = None if on_hosts else self.numbers.setdefault(counted.key, {})
            included = None
            if counted.inclusion is not None:
                looking_at = self._bins.table, self._bins.node_affinity, self._bins.taint_toleration
                included = counted.inclusion.looked_at(*looking_at, without=HOSTNAME_LABEL)
            alike = self._alike.setdefault(counted.anywhere, len(self._alike))
            self.counters.append(Counter(counted, counts, counts.add_row(), numbers, alike, included))
            self._counted_in.clear()
            self._constraint_sets.clear()

    def column_of(self, key: str, domain: Domain) -> int:
        """Of a label's value in `labels`."""
        return self.labels.column_of(domain, self.numbers.setdefault(key, {}))

    def see(self, planes: int, found: Iterable[tuple[int, int, int]]) -> None:
        """Adds so many planes to `seen`, and what is found: row, plane and column."""
        more = max(map(len, self.numbers.values()), default=0) - self.seen.shape[2]
        if planes or more:
            self.seen = np.pad(self.seen, ((0, 0), (0, planes), (0, more)))
        for where in found:
            self.seen[where] = True

    def expect_nothing(self) -> None:
        """Forgets the domains that were expected."""
        self.expected.clear()
        self.seen[:, 1] = False

    def _see_existing(self) -> None:
        found = []
        for position, item in enumerate(self.counters):
            inclusion, key = item.counted.inclusion, item.counted.key
            if inclusion is not None and not item.on_hosts:
                columns = self.columns(position)
                possible = {self.column_of(key, value) for value in self._open_domains(key, inclusion)}
                certain = np.flatnonzero(np.bincount(columns[columns >= 0])).tolist()
                found += [(item.row, 0, column) for column in possible.union(certain)]
        self.seen = np.zeros((len(self.labels.table), 0, 0), dtype=np.bool_)
        self.see(2, found)

    def _open_domains(self, key: str, inclusion: Inclusion) -> set[str]:
        """The possible values of bins whose label is undecided, where the constraint may look at those bins."""
        codes, cells = self._bins.table.column(key)
        open_cells = [(codes == code, cell) for code, cell in enumerate(cells) if isinstance(cell, tuple)]
        if not open_cells:
            return set()
        looked_at = np.ones(len(self._bins), dtype=np.bool_)
        if inclusion.tolerations is not None:
            looked_at = self._bins.taint_toleration.tolerating(inclusion.tolerations)
        found: set[str] = set()
        for wanted in [Requirements()] if inclusion.terms is None else [term.literal for term in inclusion.terms]:
            possible = looked_at & self._bins.table.matching(wanted.without(frozenset({key})), possibly=True)
            asked = wanted.get(key)
            for rows, cell in open_cells:
                if (possible & rows).any():
                    found |= {value for value in cell if value is not None and (asked is None or asked.allows(value))}
        return found

    def counts_of(self, needs: Needs) -> tuple[int, ...]:
        """The counters in which a pod of this shape counts."""
        return self._counts_of(needs.equivalence_class, needs.shape)

    def _counts_of(self, equivalence_class: int, shape: PodShape) -> tuple[int, ...]:
        found = self._counted_in.get(equivalence_class)
        if found is None:
            found = self._counted_in[equivalence_class] = tuple(sorted(set(self._table.counts_of(shape))))
        return found

    def count_pods(self) -> None:
        """Adds counters for the anti-affinity of bound pods, then counts every bound pod once."""
        for shape in {
            id(placed.bound_group.shape): placed.bound_group.shape for placed in self._bins.bound_groups
        }.values():
            self._ask_for(owned(shape, self._table.selection))
        self._see_existing()
        for placed in self._bins.bound_groups if self.counters else ():
            shape = placed.bound_group.shape
            for position in self._counts_of(self._needs.class_of(shape), shape):
                counter = self.counters[position]
                if not counter.counted.chunks_only and (counter.counted.leaving or not placed.bound_group.deleting):
                    columns = self.columns(position)[placed.rows]
                    seen = columns >= 0
                    np.add.at(counter.counts.table[counter.row], columns[seen], placed.counts[seen])

    def columns(self, position: int) -> Numbers:
        """By existing bin, the column in which a pod there counts, of the counter with this number; -1 where it does not."""
        if position not in self._columns:
            counter = self.counters[position]
            columns: Numbers = np.arange(len(self._bins), dtype=np.int64)
            if not counter.on_hosts:
                key = counter.counted.key
                codes, cells = self._bins.table.column(key)
                numbers = [self.column_of(key, cell) if isinstance(cell, str) else -1 for cell in cells]
                columns = np.array(numbers, dtype=np.int64)[codes]
            if counter.included is not None:
                columns = np.where(counter.included, columns, -1)
            self._columns[position] = columns
        return self._columns[position]
