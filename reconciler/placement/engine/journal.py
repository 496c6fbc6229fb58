"""The journal of what was placed: a row each time chunks came to a bin, with what it takes to undo that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.placement.arrays import Numbers
from reconciler.placement.batches import Batch

BATCH, BIN, CHUNKS, NOW, WAS, AT = range(6)
"""Columns. BATCH: its index in `State.batches`. BIN: existing bins are numbered first, planned nodes after them. CHUNKS: 0 where a planned node
only got another type. NOW: the number of the template that a planned node has from then on; -1 of an existing bin. WAS, AT: the template that it
had before (-1: it did not exist), and which of its types."""


class Journal:
    """Rows in the order in which things happened."""

    def __init__(self) -> None:
        self._rows: Numbers = np.empty((256, 6), dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> Numbers:
        """A view, shape (rows, 6)."""
        return self._rows[: self._length]

    def add(self, rows: Numbers | tuple[int, ...], count: int = 1) -> None:
        """Adds one row, or an array of `count` rows."""
        end = self._length + count
        if end > len(self._rows):
            self._rows = np.concatenate([self.rows, np.empty((end, 6), dtype=np.int64)])
        self._rows[self._length : end] = rows
        self._length = end

    def pop(self) -> list[int]:
        """Takes the last row away."""
        self._length -= 1
        row: list[int] = self._rows[self._length].tolist()
        return row


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Chunks that came to a bin. template: as `NOW`."""

    batch: Batch
    bin: int
    count: int
    template: int
