"""Typed failures: the type alone decides retry, event and log level. Raised everywhere, turned into words in one place.

Callers that report (`cycle`, `cli`) read `message`, `hint` and `causes`; no one parses the text.
"""

from __future__ import annotations

from collections.abc import Sequence


class Failure(Exception):  # noqa: N818 - the four kinds below are the glossary's words and read better without "Error"
    """A failure that a person can act on.

    message: what is wrong, one sentence without a full stop; hint: what to do instead; causes: the failures under it.
    """

    def __init__(self, message: str, *, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)


class Invalid(Failure):
    """What was declared cannot be carried out as written: retrying changes nothing until somebody edits it."""


class Waiting(Failure):
    """Something that will come by itself is not there yet (a cache, a node, an API): look again at the next change."""


class Stalled(Failure):
    """Nothing more happens until somebody acts, and what is in force stays in force. `reason` is a condition reason."""

    def __init__(self, message: str, *, reason: str, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message, hint=hint, causes=causes)
        self.reason = reason


class Transient(Failure):
    """A call failed in a way that a later try may not (timeouts, 429, 5xx, conflicts): retried with back-off."""
