"""Passes that a person asks for. The repository is polled first, so that the pass sees what was pushed before it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

PATIENCE = 15.0
"""Seconds to wait for the poll. Then the pass is made of what is known: Git may be out of reach just when somebody asks."""


class Requests:
    """A request is the value of an annotation. Not thread-safe: the daemon holds a lock.

    handled: the newest value for which a pass was made.
    """

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self.handled = ""
        self._seconds = seconds
        self._newest = ""
        self._since = 0.0
        self._waiting = ""
        """Asked for, and no poll has begun since."""
        self._polling = ""
        """The poll under way began after it was asked for."""
        self._polled = ""
        """The next pass is for it."""

    def ask(self, value: str) -> bool:
        """Whether it is a new request."""
        if not value or value in (self._newest, self.handled):
            return False
        self._newest = self._waiting = value
        self._since = self._seconds()
        return True

    def poll_begins(self) -> None:
        self._polling, self._waiting = self._waiting or self._polling, ""

    def poll_ended(self) -> bool:
        """Whether a pass is due now, whatever the poll came to."""
        asked, self._polling = self._polling, ""
        self._polled = asked or self._polled
        return bool(asked)

    def is_overdue(self) -> bool:
        """Whether a pass is due now, since the poll takes too long. It is said once."""
        asked = self._waiting or self._polling
        if not asked or self._seconds() - self._since < PATIENCE:
            return False
        self._polled, self._waiting, self._polling = asked, "", ""
        return True

    def pass_begins(self) -> str:
        """What to hand to `pass_ended`: the request that the pass is for, or ""."""
        asked, self._polled = self._polled, ""
        return asked

    def pass_ended(self, asked: str) -> None:
        self.handled = asked or self.handled
