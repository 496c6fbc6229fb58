"""How much work the search may still do.

Work is counted, not timed, so that equal input ends at the same place on any machine. What counts is chunks that are looked at
when nodes are filled, and steps of the solver weighted by their rows. The clock is only a guard for very slow machines. Where it strikes, the
answer may be one that another run does not find, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_FOR_SEARCH = 30_000_000
"""Units of less than a microsecond: about a third of the guard's default on two idle cores."""
MOST_FOR_BOUND = 10_000_000
"""Twenty times what 20,000 mixed pods take."""
_CELLS_PER_UNIT = 12
_LEAST_STEPS = 1000
"""Of the solver in one call; with fewer no program comes to its end."""


class WorkBudget:
    """seconds_left: what is left of the guard, in seconds; most: units of work in all."""

    def __init__(self, seconds_left: Callable[[], float], *, most: int = MOST_FOR_SEARCH) -> None:
        self._seconds_left = seconds_left
        self._left = most
        self.timed_out = False
        """Whether the guard has struck."""

    @property
    def exhausted(self) -> bool:
        return self._left <= 0 or self.seconds <= 0

    @property
    def seconds(self) -> float:
        seconds = max(0.0, self._seconds_left())
        self.timed_out |= seconds <= 0
        return seconds

    def solver_steps(self, rows: int) -> int:
        """How many steps the solver may take on a program with so many rows."""
        return max(_LEAST_STEPS, self._left // max(1, rows))

    def charge_filling(self, cells: int) -> None:
        """cells: nodes times the item types that were looked at for them."""
        self._left -= cells // _CELLS_PER_UNIT

    def charge_solving(self, steps: int, rows: int) -> None:
        self._left -= steps * rows
