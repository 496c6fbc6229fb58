"""The steps of placing, in order, so that an attempt can be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from reconciler.model.quantity import Resources
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain


@dataclass(frozen=True, slots=True)
class CountedIn:
    """Where chunks on a bin count. labels: counters, each with the domain. hosts: counters on the hostname, whose domain is
    the bin itself."""

    labels: tuple[tuple[int, Domain], ...]
    hosts: tuple[int, ...]


NOWHERE = CountedIn((), ())


@dataclass(slots=True)
class JournalEntry:
    """Chunks added to a bin, with what it takes to undo that. Existing bins are numbered first, planned ones after them.

    was, position: of a planned node, its template's number before (below 0: it did not exist), and which of its types."""

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
"""The length of the journal when an attempt began."""
