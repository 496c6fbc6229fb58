"""Topology spread: kube-scheduler's plugin PodTopologySpread. The one place where placing judges maxSkew and minDomains.

A pod may come to a domain when no more would count there than maxSkew above the fewest that count in any domain. minDomains
(KEP-3022) makes that fewest 0 while there are too few domains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.placement.loops.arrays import SPREAD_ITSELF, SPREAD_OTHERS


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """One constraint of a shape. counter: its number in the topology; counts_itself: whether its selector selects the shape."""

    counter: int
    key: str
    max_skew: int
    min_domains: int
    counts_itself: bool

    @property
    def code(self) -> int:
        return SPREAD_ITSELF if self.counts_itself else SPREAD_OTHERS

    def has_enough(self, domains: int) -> bool:
        """Whether there are as many domains as minDomains asks for."""
        return domains >= self.min_domains

    def least(self, counts: Iterable[int], domains: int) -> int:
        """The fewest that count in any of the domains, of which there are so many."""
        return min(counts, default=0) if self.has_enough(domains) else 0

    def bound(self, least: int) -> int:
        """The most that may count in a domain. least: as above."""
        return self.max_skew + least

    def least_beside(self, most: int) -> int:
        """The fewest that may count in any domain when so many count in one."""
        return most - self.max_skew
