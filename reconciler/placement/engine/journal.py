"""What was done while placing, in order, so that an attempt can be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from reconciler.model.quantity import Resources
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain


@dataclass(frozen=True, slots=True)
class CountedIn:
    """Where chunks count that come to a bin. labels: counters and the domain in which they do; hosts: counters on the
    hostname, whose domain is the bin."""

    labels: tuple[tuple[int, Domain], ...]
    hosts: tuple[int, ...]


NOWHERE = CountedIn((), ())


@dataclass(slots=True)
class JournalEntry:
    """Chunks that came to a bin (existing ones by their number, planned ones after them), with what it takes to undo that.
    was, position: number of the node template that a planned node was of before (below 0: it did not exist), and which of its types."""

    batch: Batch
    bin: int
    count: int
    counted_in: CountedIn
    was: int = -1
    position: int = 0


@dataclass(frozen=True, slots=True)
class LimitCharge:
    pool: str
    more: Resources
    instead_of: Resources
    nodes: int


Saved = NewType("Saved", int)
"""How many steps had been taken when an attempt began."""
