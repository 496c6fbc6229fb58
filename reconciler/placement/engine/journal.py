"""The journal of what was placed: what it takes to undo it, and where everything is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.arrays import Numbers
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
class Walked:
    """What one call of the walk placed. log: rows of batch, planned node, chunks, template, and template and position before (see
    `JournalEntry`). counted, place: where chunks count, and by row of the log which of these it is."""

    batches: Sequence[Batch]
    base: int
    log: Numbers
    counted: Sequence[CountedIn]
    place: Numbers

    def entries(self) -> list[JournalEntry]:
        batches, counted, base = self.batches, self.counted, self.base
        return [
            JournalEntry(batches[job], base + index, count, counted[place], was, position)
            for (job, index, count, _, was, position), place in zip(self.log.tolist(), self.place.tolist(), strict=True)
        ]


class PlacedArrays(NamedTuple):
    """Everything placed, as arrays with an element for each journal entry: its batch (an index into `batches`), bin, number of chunks, and
    where they count (an index into `counted`)."""

    batches: list[Batch]
    batch: Numbers
    bin: Numbers
    chunks: Numbers
    counted: list[CountedIn]
    counted_in: Numbers


@dataclass(frozen=True, slots=True)
class LimitCharge:
    pool: str
    more: Resources
    instead_of: Resources
    nodes: int


@dataclass(frozen=True, slots=True)
class Settled:
    """A planned node that got another type. template, position: what it was."""

    index: int
    template: int
    position: int


Saved = NewType("Saved", int)
"""The length of the journal when an attempt began."""

Step = JournalEntry | Walked | LimitCharge | Settled


def placed_arrays(journal: Sequence[Step]) -> PlacedArrays:
    batches, alone = list[Batch](), list[tuple[int, int, int, int]]()
    counted: dict[int, tuple[int, CountedIn]] = {}
    """By identity: which it is."""
    first: dict[int, int] = {}
    """The same of batches, and of lists of them."""
    parts: list[Numbers] = []
    for step in journal:
        if isinstance(step, JournalEntry):
            if id(step.batch) not in first:
                first[id(step.batch)] = len(batches)
                batches.append(step.batch)
            place, _ = counted.setdefault(id(step.counted_in), (len(counted), step.counted_in))
            alone.append((first[id(step.batch)], step.bin, step.count, place))
        elif isinstance(step, Walked):
            if id(step.batches) not in first:
                first[id(step.batches)] = len(batches)
                batches += step.batches
            places = [counted.setdefault(id(item), (len(counted), item))[0] for item in step.counted]
            jobs, bins = step.log[:, 0] + first[id(step.batches)], step.log[:, 1] + step.base
            parts.append(np.stack([jobs, bins, step.log[:, 2], np.array(places, dtype=np.int64)[step.place]]))
    parts.append(np.array(alone, dtype=np.int64).reshape(len(alone), 4).T)
    jobs, bins, counts, place_of = np.concatenate(parts, axis=1)
    return PlacedArrays(batches, jobs, bins, counts, [item for _, item in counted.values()], place_of)
