"""Typed failures: the type alone decides retry, event and log level.

Whoever reports a failure reads `message`, `hint` and `causes`; nobody parses the text.
"""

from __future__ import annotations

from collections.abc import Sequence

PATH_NOT_FOUND = "PathNotFound"
"""Reason of a stall: a folder or file that was named does not exist."""


class Failure(Exception):  # noqa: N818 - the four kinds below are the glossary's words and read better without "Error"
    """A failure that a person can act on.

    message: what is wrong, one sentence without a full stop; hint: what to do instead; causes: further failures,
    which the message does not tell.
    """

    def __init__(self, message: str, *, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)

    @property
    def with_hint(self) -> str:
        """Both in one line, where a row has room for one text."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Invalid(Failure):
    """What was declared cannot be carried out as written: a retry fails until somebody edits it."""


class Misused(Invalid):
    """What was written on the command line or in a setting cannot be used: wrong usage, whatever the command."""


class Waiting(Failure):
    """Something is not there yet but will come by itself (a cache, a node, an API): tried again at the next change."""


class Stalled(Failure):
    """Nothing more happens until somebody acts; what is in force stays so. `reason` is a condition reason."""

    def __init__(self, message: str, *, reason: str, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message, hint=hint, causes=causes)
        self.reason = reason


class Transient(Failure):
    """A call failed but may succeed later (timeouts, 429, 5xx, conflicts): retried with back-off."""
