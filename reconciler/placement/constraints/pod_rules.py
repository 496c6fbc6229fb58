"""What pods decide about pods, by domain: kube-scheduler's plugins PodTopologySpread and InterPodAffinity. The one place where placing judges
maxSkew and minDomains.

**Topology spread**: a pod may come to a domain if the count there then exceeds the global minimum by at most maxSkew. The global minimum is
the fewest pods that count in any domain; it is 0 while there are fewer domains than minDomains (KEP-3022). Constraints with
`ScheduleAnyway` keep no pod off. kube-scheduler scores nodes by them: the fewer pods count in a node's domains, the better. Pods of a
ReplicaSet, StatefulSet or ReplicationController without constraints are scored by two default ones.

**Affinity and anti-affinity**: a pod with required affinity may come to a domain with a pod that all of its terms select. The first of pods
with affinity to each other may go anywhere. With anti-affinity a pod may come where no pod is that its term selects, and none whose term
selects it. kube-scheduler scores nodes by preferred terms of the pod and of others, and by others' required affinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import floor, log

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Toleration
from reconciler.placement.arrays import (
    AFFINITY,
    ANTI_AFFINITY_ITSELF,
    ANTI_AFFINITY_OTHERS,
    PLENTY,
    SPREAD_ITSELF,
    SPREAD_OTHERS,
    CounterArrays,
    Fractions,
    Numbers,
)
from reconciler.placement.batches import Needs, NodeTerm
from reconciler.placement.constraints.domain_counters import (
    EACH_NODE,
    Counted,
    Inclusion,
    Selection,
    TopologyRule,
    with_label_keys,
)

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_EVERYTHING = LabelSelector()
SPREAD_WEIGHT = 2
"""The weight of the score in kube-scheduler's default profile."""

Including = Callable[[tuple[NodeTerm, ...] | None, tuple[Toleration, ...] | None, tuple[str, ...]], Inclusion]
"""Gives the one `Inclusion` with these fields."""


@dataclass(frozen=True, slots=True)
class SpreadRule(TopologyRule):
    """One constraint of a shape that keeps pods off."""

    max_skew: int
    min_domains: int

    by_minimum = True

    @property
    def code(self) -> int:
        return SPREAD_ITSELF if self.counts_itself else SPREAD_OTHERS

    @property
    def numbers(self) -> tuple[int, int]:
        return self.max_skew, self.min_domains

    def has_enough(self, domains: int) -> bool:
        """Whether there are as many domains as minDomains asks for."""
        return domains >= self.min_domains

    def least(self, counts: Iterable[int], domains: int) -> int:
        return min(counts, default=0) if self.has_enough(domains) else 0

    def bound(self, least: int) -> int:
        return self.max_skew + least


def spread_of(rules: Iterable[TopologyRule]) -> tuple[SpreadRule, ...]:
    """Those of the rules that are spread constraints."""
    return tuple(rule for rule in rules if isinstance(rule, SpreadRule))


@dataclass(frozen=True, slots=True)
class SoftSpread:
    """One constraint by which nodes are scored. counter: what counts; on the hostname, on each node by itself."""

    counter: int
    key: str
    max_skew: int


def spread_rules(
    needs: Needs, number: Callable[[Counted], int], including: Including, *, chunks_only: bool
) -> list[SpreadRule]:
    """The shape's constraints that keep pods off. number: gives the number of a counter."""
    hard = [item for item in needs.shape.topology_spread if item.when_unsatisfiable == HARD]
    keys = tuple(sorted({item.topology_key for item in hard}))
    rules = []
    for constraint in hard:
        selection = _selection(needs.shape, constraint)
        inclusion = _inclusion(needs, constraint, including, keys)
        key = constraint.topology_key
        counter = number(Counted(key, (selection,), inclusion=inclusion, chunks_only=chunks_only))
        minimum = constraint.min_domains or 1
        rules.append(SpreadRule(counter, key, selection.selects(needs.shape), constraint.max_skew, minimum))
    return rules


def soft_spread(
    needs: Needs, number: Callable[[Counted], int], including: Including, *, by_default: bool
) -> list[SoftSpread]:
    """What nodes are scored by. by_default: whether pods without constraints of their own are under the default ones."""
    shape = needs.shape
    constraints = shape.topology_spread or (default_constraints(shape) if by_default else ())
    soft = [item for item in constraints if item.when_unsatisfiable == SOFT]
    keys = tuple(sorted({item.topology_key for item in soft})) if shape.topology_spread else ()
    found = []
    for constraint in soft:
        key, selection = constraint.topology_key, _selection(shape, constraint)
        counted = Counted(EACH_NODE, (selection,), inclusion=including(None, None, ()))
        if key != HOSTNAME_LABEL:
            counted = Counted(key, (selection,), inclusion=_inclusion(needs, constraint, including, keys))
        found.append(SoftSpread(number(counted), key, constraint.max_skew))
    return found


_OF_ONE_POD = frozenset(
    {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash"}
)
"""Labels that no controller selects by, since they differ from pod to pod."""


def default_constraints(shape: PodShape) -> tuple[TopologySpread, ...]:
    """kube-scheduler's own for pods of controllers (pkg/scheduler/framework/plugins/podtopologyspread, systemDefaultConstraints).

    They select what the pod's controller selects, of which nothing is known here but the pod's labels."""
    selector = LabelSelector(tuple(item for item in shape.labels if item[0] not in _OF_ONE_POD))
    return (TopologySpread(HOSTNAME_LABEL, 3, SOFT, selector), TopologySpread(ZONE_LABEL, 5, SOFT, selector))


def _inclusion(needs: Needs, constraint: TopologySpread, including: Including, keys: tuple[str, ...]) -> Inclusion:
    return including(
        needs.affinity_terms if constraint.node_affinity_policy == "Honor" else None,
        needs.shape.tolerations if constraint.node_taints_policy == "Honor" else None,
        keys,
    )


def _selection(shape: PodShape, constraint: TopologySpread) -> Selection:
    """kube-scheduler counts nothing by a selector that is there but empty (countPodsMatchSelector)."""
    selector = with_label_keys(constraint.selector, shape, constraint.match_label_keys)
    return Selection(frozenset() if selector == _EVERYTHING else frozenset({shape.namespace}), (selector,))


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_spread(  # noqa: C901 - compiled code takes plain arrays, and no keywords
    totals: Numbers,
    raw: Fractions,
    able: Numbers,
    soft: Numbers,
    strict: bool,  # noqa: FBT001 - as above
    domains: Numbers,
    counters: CounterArrays,
    seen: Numbers,
) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where the fewest pods count. raw, seen: to write to.

    soft: a row for each constraint: its counter, key and maxSkew. strict: nodes that lack one of the keys score 0."""
    key_of, counts = counters[0], counters[4]
    for index in range(len(able)):
        raw[index] = 0.0
        for row in range(len(soft) if strict else 0):
            if domains[soft[row, 1], able[index]] < 0:
                raw[index] = -1.0
    for row in range(len(soft)):
        counter, key, max_skew = soft[row, 0], soft[row, 1], soft[row, 2]
        own = key_of[counter]
        seen[: len(seen)] = 0
        size = 0
        for index in range(len(able)):
            if raw[index] >= 0.0:
                domain = domains[own, able[index]]
                size += 1 - seen[domain]  # those that lack the key are seen in the last place, as one domain more
                seen[domain] = 1
        weight = log(size + 2.0)
        for index in range(len(able)):
            if raw[index] >= 0.0 and domains[key, able[index]] >= 0:
                raw[index] += counts[counter, domains[own, able[index]]] * weight + (max_skew - 1.0)
    low, high = PLENTY, 0
    for index in range(len(able)):
        if raw[index] >= 0.0:
            low, high = min(low, floor(raw[index] + 0.5)), max(high, floor(raw[index] + 0.5))
    for index in range(len(able)):
        if raw[index] >= 0.0:
            score = 100 if high == 0 else 100 * (high + low - floor(raw[index] + 0.5)) // high
            totals[able[index]] += SPREAD_WEIGHT * score


POD_AFFINITY_WEIGHT = 2
"""The weight of the score in kube-scheduler's default profile."""
_WEIGHT_OF_REQUIRED = 1
"""What a pod's required affinity is worth to the pods that it selects (hardPodAffinityWeight)."""

Selecting = Callable[[PodShape, PodAffinityTerm, bool], Selection]
"""Gives the pods that a shape's term selects; true: all pods, rather than none, where namespaces are not known."""


class AntiAffinityRule(TopologyRule):
    """No counted pod may be in the domain. Where the term selects the shape too, each domain takes one chunk at most."""

    __slots__ = ()
    apart = True

    @property
    def code(self) -> int:
        return ANTI_AFFINITY_ITSELF if self.counts_itself else ANTI_AFFINITY_OTHERS


class AffinityRule(TopologyRule):
    """A counted pod must be in the domain. Where the terms select the shape too, the first such pod may go anywhere (the self-affinity
    bootstrap, see `Topology.bootstrapping`)."""

    __slots__ = ()

    @property
    def code(self) -> int:
        return AFFINITY

    @property
    def uses_up(self) -> bool:
        return False


def affinity_of(rules: Iterable[TopologyRule]) -> tuple[AffinityRule, ...]:
    """Those of the rules that are affinity."""
    return tuple(rule for rule in rules if isinstance(rule, AffinityRule))


def own_rules(
    shape: PodShape, number: Callable[[Counted], int], selecting: Selecting, *, chunks_only: bool
) -> list[TopologyRule]:
    """The shape's required terms. number: gives the number of a counter."""
    rules: list[TopologyRule] = []
    for term in shape.pod_anti_affinity:
        selection = selecting(shape, term, True)
        counter = number(Counted(term.topology_key, (selection,), chunks_only=chunks_only, leaving=True))
        rules.append(AntiAffinityRule(counter, term.topology_key, selection.selects(shape)))
    together = tuple(selecting(shape, term, False) for term in shape.pod_affinity)
    itself = all(selection.selects(shape) for selection in together)
    keys = [term.topology_key for term in shape.pod_affinity]
    return rules + [AffinityRule(number(Counted(key, together)), key, itself) for key in keys]


def owned(shape: PodShape, selecting: Selecting, *, chunks_only: bool = False) -> Iterable[Counted]:
    """The counters of pods with the shape's anti-affinity, which keep off what it selects."""
    for term in shape.pod_anti_affinity:
        selection = selecting(shape, term, True)
        yield Counted(term.topology_key, (selection,), owners=True, chunks_only=chunks_only, leaving=True)


def attracting(shape: PodShape, selecting: Selecting) -> Iterable[Counted]:
    """The counters of pods with terms by which others are scored that such a pod selects."""
    weighted = [(term, _WEIGHT_OF_REQUIRED) for term in shape.pod_affinity]
    for term, weight in (*weighted, *_preferred(shape)):
        selection = selecting(shape, term, False)
        yield Counted(term.topology_key, (selection,), owners=True, leaving=True, weight=weight)


def attracted(shape: PodShape, number: Callable[[Counted], int], selecting: Selecting) -> list[tuple[int, int]]:
    """The shape's own preferred terms: counter and weight, below 0 for anti-affinity."""
    return [
        (number(Counted(term.topology_key, (selecting(shape, term, False),), leaving=True)), weight)
        for term, weight in _preferred(shape)
    ]


def _preferred(shape: PodShape) -> list[tuple[PodAffinityTerm, int]]:
    liked = [(item.term, item.weight) for item in shape.preferred_pod_affinity]
    return liked + [(item.term, -item.weight) for item in shape.preferred_pod_anti_affinity]


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_affinity(
    totals: Numbers, raw: Fractions, able: Numbers, attractions: Numbers, domains: Numbers, counters: CounterArrays
) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where attraction is greatest, 0 where it is least. raw: to write to.

    attractions: a row for each counter and weight."""
    key_of, counts = counters[0], counters[4]
    low, high = float(PLENTY), -float(PLENTY)
    for index in range(len(able)):
        raw[index] = 0.0
        for row in range(len(attractions)):
            counter = attractions[row, 0]
            domain = domains[key_of[counter], able[index]]
            if domain >= 0:
                raw[index] += attractions[row, 1] * counts[counter, domain]
        low, high = min(low, raw[index]), max(high, raw[index])
    if high > low:
        for index in range(len(able)):
            totals[able[index]] += POD_AFFINITY_WEIGHT * int(100.0 * ((raw[index] - low) / (high - low)))
