"""Typed failures: the type alone decides retry, event and log level.

Whoever reports a failure reads `message`, `hint` and `causes`; nobody parses the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from traceback import extract_tb

_LONGEST = 200
"""Letters of an exception's text that are told: a number of 5,000 digits may be in it."""
PATH_NOT_FOUND = "PathNotFound"
"""Reason of a stall: a folder or file in the settings does not exist."""


class Failure(Exception):  # noqa: N818 - the four kinds below are the glossary's words and read better without "Error"
    """A failure that a person can act on.

    message: what is wrong, one sentence without a full stop. hint: what to do instead. causes: further failures that the message
    does not mention.
    """

    def __init__(self, message: str, *, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)

    @property
    def with_hint(self) -> str:
        """Message and hint in one line, for tables with room for one text."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Invalid(Failure):
    """What was declared cannot be carried out as written: a retry fails until somebody edits it."""


class Misused(Invalid):
    """An option or a setting cannot be used: an error of usage in every command."""


class Waiting(Failure):
    """Something does not exist yet but will by itself (a cache, a node, an API): retried at the next change."""


FORBIDDEN = "Forbidden"
"""The reason of a `Stalled`: who asks is known, and may not do this."""


class Stalled(Failure):
    """Nothing proceeds until somebody acts; what is in force stays in force. `reason` is a condition reason."""

    def __init__(self, message: str, *, reason: str, hint: str = "", causes: Sequence[BaseException] = ()) -> None:
        super().__init__(message, hint=hint, causes=causes)
        self.reason = reason


class Transient(Failure):
    """A call failed but may succeed later (timeouts, 429, 5xx, conflicts): retried with back-off."""


def message_of(error: Exception) -> str:
    """What a failure says; of any other exception, which is a defect of headroom, its text and where it was raised."""
    if isinstance(error, Failure):
        return error.message
    place = extract_tb(error.__traceback__)[-1]
    text = str(error)
    said = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
    return f"internal error: {type(error).__name__}: {said} ({place.filename.rpartition('/')[2]}:{place.lineno})"
