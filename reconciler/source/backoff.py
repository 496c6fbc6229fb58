"""When something that failed may be tried again. Pure: the caller passes the time.

A back-off belongs to one target: the remote, or one commit. A bad commit waits longer and longer, while a newer one is tried at
once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(milliseconds=750)
LONGEST = timedelta(minutes=15)
_DOUBLINGS = 20
"""Enough to reach the longest delay, and a bound on the arithmetic after many failures."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """failures: in a row; not_before: when the target may be tried again."""

    target: str
    failures: int
    not_before: datetime


def retry_delay(failures: int, seed: object) -> timedelta:
    """750 ms after the first failure, doubled by each further one up to 15 minutes. The delay is then shortened by up to a
    tenth, so that many daemons do not return in step."""
    delay = min(FIRST * (1 << min(failures - 1, _DOUBLINGS)), LONGEST)
    return delay * (1 - _fraction((seed, failures)) / 10)


def _fraction(seed: object) -> float:
    """A number from 0 up to 1 that depends on the seed alone."""
    digest = hashlib.sha256(repr(seed).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def after_failure(previous: Backoff | None, target: str, now: datetime) -> Backoff:
    """The back-off after one more failure of the target. The count of another target starts at one."""
    failures = previous.failures + 1 if previous is not None and previous.target == target else 1
    return Backoff(target, failures, now + retry_delay(failures, target))


def may_try(backoff: Backoff | None, target: str, now: datetime) -> bool:
    """Whether the target may be tried now. A clock that was set back must not prolong the wait beyond the longest delay."""
    if backoff is None or backoff.target != target:
        return True
    return now >= backoff.not_before or backoff.not_before - now > LONGEST
