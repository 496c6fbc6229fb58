"""When a thing that failed may be tried again. Used by git. Pure: the caller brings the time.

A back-off belongs to one target (the remote, or one commit): a bad commit waits longer and longer, and a newer commit is
tried at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.source.polling import fraction

FIRST = timedelta(milliseconds=750)
LONGEST = timedelta(minutes=15)
_DOUBLINGS = 20
"""More than enough to reach the longest delay, and few enough for the arithmetic to stay small."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """failures: in a row; not_before: when the target may be tried again."""

    target: str
    failures: int
    not_before: datetime


def retry_delay(failures: int, seed: object) -> timedelta:
    """After the first failure 750 ms, doubling with each up to 15 minutes, then up to a tenth shorter so that many
    daemons do not come back in step."""
    delay = min(FIRST * (1 << min(failures - 1, _DOUBLINGS)), LONGEST)
    return delay * (1 - fraction((seed, failures)) / 10)


def after_failure(previous: Backoff | None, target: str, now: datetime) -> Backoff:
    """The back-off after one more failure of the target; another target begins anew."""
    failures = previous.failures + 1 if previous is not None and previous.target == target else 1
    return Backoff(target, failures, now + retry_delay(failures, target))


def may_try(backoff: Backoff | None, target: str, now: datetime) -> bool:
    """Whether the target may be tried now. A clock that was set back does not make the wait longer than the longest."""
    if backoff is None or backoff.target != target:
        return True
    return now >= backoff.not_before or backoff.not_before - now > LONGEST
