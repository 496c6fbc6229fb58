"""The rules between pods as rows: which counters a shape counts in, and which ones decide where it may go.

A counter belongs to one term of some pod spec. Each plugin's file says which counters a shape's terms need. Here they get numbers, so that
equal ones are one. What they count is kept by others: by `Topology` for placing, by the arrays of `placement/scheduler` for
kube-scheduler's model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.model.requirements import LabelSelector, Toleration
from reconciler.placement.constraints.domain_counters import (
    Counted,
    Inclusion,
    Selection,
    TopologyRule,
    with_label_keys,
)
from reconciler.placement.constraints.inter_pod_affinity import (
    AffinityRule,
    AntiAffinityRule,
    affinity_of,
    attracted,
    attracting,
    own_rules,
    owned,
)
from reconciler.placement.constraints.topology_spread import (
    SoftSpread,
    SpreadRule,
    soft_spread,
    spread_of,
    spread_rules,
)
from reconciler.placement.needs import Needs, NodeTerm


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintSet:
    """The rules of one shape, grouped as placing needs them."""

    rules: tuple[TopologyRule, ...]
    """The shape's own, and those of pods that keep it off."""
    keys: tuple[str, ...]
    """Labels of the rules other than the hostname, and of other pods' rules that count these chunks."""
    on_labels: tuple[TopologyRule, ...]
    """Rules on labels other than the hostname."""
    on_hosts: tuple[TopologyRule, ...]
    """Rules on the hostname."""
    spread: tuple[SpreadRule, ...]
    host_spread: tuple[SpreadRule, ...]
    """Spread rules on the hostname."""
    affinity: tuple[AffinityRule, ...]
    """Affinity rules on labels other than the hostname."""
    host_affinity: tuple[AffinityRule, ...]
    shared: bool
    """Whether placing one of these chunks changes where the next may go."""
    by_domain: bool
    """Whether any rule depends on more than whether some pod counts in the domain."""


def constraint_set_of(rules: tuple[TopologyRule, ...], counted_by: Iterable[str]) -> ConstraintSet:
    """counted_by: the labels by which these chunks count in some rule."""
    on_labels = tuple(rule for rule in rules if rule.key != HOSTNAME_LABEL)
    on_hosts = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL)
    return ConstraintSet(
        rules=rules,
        keys=tuple(sorted({*counted_by, *(rule.key for rule in on_labels)} - {HOSTNAME_LABEL})),
        on_labels=on_labels,
        on_hosts=on_hosts,
        spread=spread_of(rules),
        host_spread=spread_of(on_hosts),
        affinity=affinity_of(on_labels),
        host_affinity=affinity_of(on_hosts),
        shared=any(rule.uses_up for rule in on_labels),
        by_domain=not all(rule.apart for rule in rules),
    )


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
        """The constraints that nodes are scored by. by_default: see `topology_spread.soft_spread`."""
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
