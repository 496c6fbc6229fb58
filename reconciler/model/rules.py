"""Settings that the core goes by: caps of one pass, and how buffers and nodes are decided. `RequestRules` stands with requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from reconciler.model.buffers import SHRINK_AFTER, Fulfilment
from reconciler.model.placement import SurgeMode


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of what one pass may do; 0 means no limit. price_per_hour: USD an hour of all nodes together. prune_share: what removals may take
    within an hour, of the inventory's objects and of the nodes that hold chunks; with 1 all of them may go. prune_objects_at_least,
    prune_nodes_at_least: but at least these many.

    nodes_per_request: new nodes for one ProvisioningRequest, over all passes of an attempt. For new_nodes_per_pass all of them count as
    one: they are made in one pass, or wait for one in which nothing else is made.
    """

    new_nodes_per_pass: int = 100
    price_per_hour: float = 0.0
    nodes_per_pool: int = 0
    nodes_per_request: int = 0
    prune_share: float = 0.25
    prune_objects_at_least: int = 5
    prune_nodes_at_least: int = 2

    def most_objects(self, there: int) -> int:
        """How many of these objects removals may take within an hour."""
        return max(self.prune_objects_at_least, self._share(there))

    def most_nodes(self, held: int) -> int:
        """How many of the nodes with chunks removals may take within an hour."""
        return max(self.prune_nodes_at_least, self._share(held))

    def _share(self, count: int) -> int:
        """Rounded down, as the share is written: 0.29 of 100 is 29, though as binary numbers it is a little less."""
        return int(count * Decimal(str(self.prune_share)))


ALL_REMOVALS = 1.0
"""The share with which everything that is no longer declared goes at once."""
UNCAPPED = Caps(new_nodes_per_pass=0, prune_share=ALL_REMOVALS)
"""For comparisons, in which what several passes will make counts as a whole. A note names the real caps."""


@dataclass(frozen=True, slots=True)
class BufferRules:
    """fulfilment: who keeps buffers without the annotation: placeholder, native or balloon. balloon_image: for balloon pods.

    shrink_after: how long a share of running pods (`headroom.dev/percent-of`) must have been less before its buffer shrinks.
    """

    fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    balloon_image: str = "registry.k8s.io/pause:3.10"
    shrink_after: timedelta = SHRINK_AFTER


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """How nodes are chosen.

    mode: fast, or optimal for cheaper new nodes by linear programming. optimal_within: after that long the best found so far is used.
    instance_types: how many types a placeholder lists, so that its launch survives a stock-out of one.
    surge: what a full buffer promises: planned, alone (nobody waits if it is used alone) or all (if all buffers are used at once).
    not_ready_grace: how long chunks wait for a held node that is not ready, before other room is made for them.
    back_off: how long offerings are left alone after a launch that gave no node, doubled up to back_off_at_most. A back-off is remembered
    for back_off_at_most after its end, so that the next failure doubles it.
    consolidation_share, consolidation_per_hour: what leaving a held node for cheaper room must save, of its price and in USD an hour.
    check: whether independent code verifies every placement before it is used.
    """

    mode: str = "fast"
    optimal_within: timedelta = timedelta(minutes=1)
    instance_types: int = 20
    surge: SurgeMode = SurgeMode.ALONE
    not_ready_grace: timedelta = timedelta(minutes=1)
    back_off: timedelta = timedelta(minutes=3)
    back_off_at_most: timedelta = timedelta(minutes=10)
    consolidation_share: float = 0.1
    consolidation_per_hour: float = 0.01
    check: bool = False

    @property
    def is_optimal(self) -> bool:
        """Whether cheaper new nodes are looked for than the fast mode finds."""
        return self.mode == "optimal"

    def least_saving(self, price: float) -> float:
        """What leaving a node of this price must save at least, USD an hour."""
        return max(self.consolidation_per_hour, self.consolidation_share * price)
