"""Affinity and anti-affinity between pods: kube-scheduler's plugin InterPodAffinity.

A pod with required affinity may come to a domain with a pod that all of its terms select. The first of pods with affinity to each other
may go anywhere. With anti-affinity a pod may come where no pod is that its term selects, and none whose term selects it. kube-scheduler
scores nodes by preferred terms of the pod and of others, and by others' required affinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.model.placement import Cause
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.placement.arrays import (
    AFFINITY,
    ANTI_AFFINITY_ITSELF,
    ANTI_AFFINITY_OTHERS,
    PLENTY,
    CounterArrays,
    Fractions,
    Numbers,
)
from reconciler.placement.constraints.domain_counters import Counted, RuleStanding, Selection, TopologyRule

WEIGHT = 2
"""Of the score, in kube-scheduler's default profile."""
_WEIGHT_OF_REQUIRED = 1
"""What a pod's required affinity is worth to the pods that it selects (hardPodAffinityWeight)."""

Selecting = Callable[[PodShape, PodAffinityTerm, bool], Selection]
"""Gives the pods that a shape's term selects; true: all pods, rather than none, where namespaces are not known."""


class AntiAffinityRule(TopologyRule):
    """No counted pod may be in the domain. Where the term selects the shape too, each domain takes one chunk at most."""

    __slots__ = ()
    cause = Cause.POD_ANTI_AFFINITY
    apart = True

    @property
    def code(self) -> int:
        return ANTI_AFFINITY_ITSELF if self.counts_itself else ANTI_AFFINITY_OTHERS

    def words(self, standing: RuleStanding) -> str:
        link = "of pods that keep off" if standing.of_others else "to"
        return f"anti-affinity by {self.key} {link} {standing.whom}{f': {standing.here}' if standing.here else ''}"


class AffinityRule(TopologyRule):
    """A counted pod must be in the domain. Where the terms select the shape too, the first such pod may go anywhere (the self-affinity
    bootstrap, see `Topology.bootstrapping`)."""

    __slots__ = ()
    cause = Cause.POD_AFFINITY

    @property
    def code(self) -> int:
        return AFFINITY

    @property
    def uses_up(self) -> bool:
        return False

    def words(self, standing: RuleStanding) -> str:
        there = f"there are {standing.there}" if standing.there else "there are none"
        return f"affinity by {self.key} to {standing.whom}, of which {there}"


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
    key_of, first, counts = counters[0], counters[1], counters[6]
    low, high = float(PLENTY), -float(PLENTY)
    for index in range(len(able)):
        raw[index] = 0.0
        for row in range(len(attractions)):
            counter = attractions[row, 0]
            domain = domains[key_of[counter], able[index]]
            if domain >= 0:
                raw[index] += attractions[row, 1] * counts[first[counter] + domain]
        low, high = min(low, raw[index]), max(high, raw[index])
    if high > low:
        for index in range(len(able)):
            totals[able[index]] += WEIGHT * int(100.0 * ((raw[index] - low) / (high - low)))
