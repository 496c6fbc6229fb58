"""Topology spread: kube-scheduler's plugin PodTopologySpread. The one place where placing judges maxSkew and minDomains.

A pod may come to a domain if the count there then exceeds the global minimum by at most maxSkew. The global minimum is the fewest
pods that count in any domain; it is 0 while there are fewer domains than minDomains (KEP-3022).
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
        """The global minimum. counts: those of the domains. domains: how many there are."""
        return min(counts, default=0) if self.has_enough(domains) else 0

    def bound(self, least: int) -> int:
        """The most pods that may count in a domain, given the global minimum."""
        return self.max_skew + least
