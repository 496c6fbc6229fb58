"""Required affinity and anti-affinity between pods: kube-scheduler's plugin InterPodAffinity."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.placement.loops.arrays import AFFINITY, ANTI_AFFINITY_ITSELF, ANTI_AFFINITY_OTHERS


@dataclass(frozen=True, slots=True)
class AntiAffinityRule:
    """No counted pod may be in the domain. counts_itself: the term selects the shape too, so each domain takes one chunk at most."""

    counter: int
    key: str
    counts_itself: bool

    @property
    def code(self) -> int:
        return ANTI_AFFINITY_ITSELF if self.counts_itself else ANTI_AFFINITY_OTHERS


@dataclass(frozen=True, slots=True)
class AffinityRule:
    """A counted pod must be in the domain.

    counts_itself: the term selects the shape too, so the first such pod may go anywhere (the self-affinity bootstrap, see
    `Topology.bootstrapping`)."""

    counter: int
    key: str
    counts_itself: bool

    @property
    def code(self) -> int:
        return AFFINITY
