"""How much work the optimising mode still may do. Used by packings and what it calls.

Work is counted, not timed: chunks looked at when nodes are filled, and steps of the solver, each weighted by the rows it goes
through. So the same input ends at the same place on any machine. The clock is only a guard beside that, for machines that
are very slow: where it strikes, the answer is one that another run may not find, and it is said.
"""

from __future__ import annotations

from collections.abc import Callable

MOST = 20_000_000
"""About a third of the guard's default on two cores that have nothing else to do; a unit is about a microsecond there."""
MOST_FOR_BOUND = 200_000_000
"""For the least possible price: that program has many rows, of which a step of the solver goes through few."""
LITTLE = MOST // 20
"""Up to which more may be tried for what is sure to be a small gain."""
_CELLS_EACH = 12
"""Chunks that are looked at in one unit."""
_LEAST_STEPS = 1000
"""Of the solver, in one go: what is left of the work may be too little for it to come to anything."""


class Effort:
    """seconds_left: what is left of the guard; most: units of work in all."""

    def __init__(self, seconds_left: Callable[[], float], *, most: int = MOST) -> None:
        self._seconds_left = seconds_left
        self._most = most
        self._left = most
        self.too_slow = False
        """Whether the guard has struck."""

    @property
    def over(self) -> bool:
        return self._left <= 0 or self.seconds <= 0

    @property
    def spent(self) -> int:
        return self._most - self._left

    @property
    def seconds(self) -> float:
        seconds = max(0.0, self._seconds_left())
        self.too_slow |= seconds <= 0
        return seconds

    def steps(self, rows: int) -> int:
        """How many the solver may take on so many rows."""
        return max(_LEAST_STEPS, self._left // max(1, rows))

    def filled(self, cells: int) -> None:
        """Nodes times kinds of chunks that were looked at for them."""
        self._left -= cells // _CELLS_EACH

    def solved(self, steps: int, rows: int) -> None:
        self._left -= steps * rows
