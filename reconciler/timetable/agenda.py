"""When the next pass is due: quiet times after changes, back-off after failures. The daemon reports what happens and when.

All of the rules are here:

- A change of the cluster or a new commit starts a pass once nothing has changed for `quiet`. It starts at the latest `quiet_at_most`
after the first change.
- A change that takes held room, or with which such room has come, starts one once no further such change has come for a moment
  (`BURST`), since pods come in bursts. Within `quiet` of such a pass, room that is taken is gathered like any other change.
- A tick, a request, an edge (a schedule's value changes) and a clock that was set back start one at once.
- After a transient failure nothing starts a pass until its back-off is over, and then one starts by itself. Back-offs double from
`retry_first` to `retry_at_most`.
- After a pass of which only some writes failed one starts by itself in the same way. Whatever else happens starts one meanwhile: the
  webhook of one object must not delay the nodes of another.
- After an invalid or stalled pass nothing starts one until the next poll of the repository has succeeded.
- After one that waits, the next change starts one.
- A newer commit, a request or an edge ends every back-off. A commit that fails must not delay the one that repairs it. And what a
schedule asks for from an edge on has not been tried yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.errors import Failure, Transient, Waiting
from reconciler.model.quantity import doubled


class Trigger(StrEnum):
    """Why a pass begins; of several triggers, the first in this order is named."""

    START = "start"
    REQUEST = "request"
    COMMIT = "commit"
    EDGE = "edge"
    RETRY = "retry"
    CLOCK = "clock"
    TAKEN = "taken"
    CAME = "came"
    CHANGE = "change"
    TICK = "tick"


BURST = timedelta(milliseconds=150)
BURST_AT_MOST = timedelta(milliseconds=500)
"""The longest wait after the first change of a burst."""
_QUIETLY = {Trigger.COMMIT, Trigger.TAKEN, Trigger.CHANGE}
_Series = tuple[datetime, datetime]
"""When the first and the last change of a series came."""
_LIFTING = {Trigger.START, Trigger.COMMIT, Trigger.REQUEST, Trigger.EDGE}


@dataclass(frozen=True, slots=True)
class Pacing:
    """How long to wait: after the last change, at most after the first, and the first and longest back-off."""

    quiet: timedelta = timedelta(seconds=2)
    quiet_at_most: timedelta = timedelta(seconds=15)
    retry_first: timedelta = timedelta(milliseconds=750)
    retry_at_most: timedelta = timedelta(minutes=15)


class Agenda:
    """What has been asked for since the last pass. Not thread-safe: the daemon holds a lock."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._wanted: set[Trigger] = set()
        self._changes: _Series | None = None
        self._burst: _Series | None = None
        self._at_once: datetime | None = None
        self._refilled: datetime | None = None
        self._held_until_poll = False
        self._failures = 0
        self._retry: datetime | None = None
        """When what failed is tried again by itself."""
        self._holds = False
        """Whether nothing starts a pass before that, since it was the pass itself that failed."""

    def want(self, trigger: Trigger, now: datetime) -> None:
        """Reports something that a pass should look at."""
        self._wanted.add(trigger)
        if trigger in _LIFTING:
            self._lift()
        if trigger is Trigger.CAME or (trigger is Trigger.TAKEN and not self._has_just_refilled(now)):
            self._burst = (self._burst or (now, now))[0], now
        elif trigger in _QUIETLY:
            self._changes = (self._changes or (now, now))[0], now
        else:
            self._at_once = min(self._at_once or now, now)

    def polled(self, now: datetime) -> None:
        """Reports a successful poll of the repository, with or without news."""
        if self._held_until_poll:
            self._lift()
            self.want(Trigger.RETRY, now)

    def due(self) -> tuple[datetime, Trigger] | None:
        """When the next pass begins, and why; None while there is nothing to do or a poll must come first."""
        if self._held_until_poll:
            return None
        times = [] if self._at_once is None else [self._at_once]
        for series, quiet, at_most in (
            (self._changes, self._pacing.quiet, self._pacing.quiet_at_most),
            (self._burst, BURST, BURST_AT_MOST),
        ):
            if series is not None:
                times.append(min(series[1] + quiet, series[0] + at_most))
        at = min(times, default=None)
        if self._retry is not None and (self._holds or at is None or self._retry < at):
            return self._retry, Trigger.RETRY
        return None if at is None else (at, next(trigger for trigger in Trigger if trigger in self._wanted))

    def begin(self, now: datetime) -> None:
        """Reports that a pass begins, which sees everything wanted so far."""
        if self._burst is not None and Trigger.TAKEN in self._wanted:
            self._refilled = now
        self._wanted.clear()
        self._changes = self._burst = self._at_once = None

    def ended(self, now: datetime, failure: Failure | None, *, only_writes: bool = False) -> None:
        """Reports that the pass has ended. failure: why it, or one of its writes, did not succeed. only_writes: the pass itself did."""
        if failure is None or isinstance(failure, Waiting):
            self._lift()
        elif self._wanted & _LIFTING:
            return
        elif not isinstance(failure, Transient):
            self._lift()
            self._held_until_poll = True
        elif not only_writes or self._holds or self._retry is None or self._retry <= now:
            self._failures = self._failures + 1 if self._holds is not only_writes else 1
            self._holds = not only_writes
            self._retry = now + doubled(self._pacing.retry_first, self._failures - 1, self._pacing.retry_at_most)

    def set_back(self, by: timedelta, now: datetime) -> None:
        """Reports that the clock was set back: a pass begins at once, or at the end of a back-off, which moves with the clock."""
        self._changes = self._burst = self._at_once = self._refilled = None
        self._retry = None if self._retry is None else self._retry - by
        self.want(Trigger.CLOCK, now)

    def _has_just_refilled(self, now: datetime) -> bool:
        return self._refilled is not None and timedelta(0) <= now - self._refilled < self._pacing.quiet

    def _lift(self) -> None:
        self._held_until_poll = self._holds = False
        self._failures, self._retry = 0, None
