"""Required affinity and anti-affinity between pods: kube-scheduler's plugin InterPodAffinity."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.placement.loops.arrays import AFFINITY, ANTI_AFFINITY_ITSELF, ANTI_AFFINITY_OTHERS


@dataclass(frozen=True, slots=True)
class AntiAffinityRule:
    """No counted pod in the domain. counts_itself: the term selects the shape too, so that at most one chunk goes to each domain."""

    counter: int
    key: str
    counts_itself: bool

    @property
    def code(self) -> int:
        return ANTI_AFFINITY_ITSELF if self.counts_itself else ANTI_AFFINITY_OTHERS


@dataclass(frozen=True, slots=True)
class AffinityRule:
    """A counted pod must be in the domain. counts_itself: the term selects the shape too, so that the first of its kind may go
    anywhere (the self-affinity bootstrap, see `Topology.bootstrapping`)."""

    counter: int
    key: str
    counts_itself: bool

    @property
    def code(self) -> int:
        return AFFINITY
