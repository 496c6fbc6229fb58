"""How long to wait between polls. Pure: the caller passes the seed."""

from __future__ import annotations

import hashlib
from datetime import timedelta

JITTER = 0.05


def poll_delay(interval: timedelta, seed: object) -> timedelta:
    """The interval, up to 5% longer or shorter, so that many daemons do not ask a Git host in step.

    The same seed gives the same delay, so it should differ between daemons and polls, such as (identity, poll number).
    """
    return interval * (1 + JITTER * (2 * fraction(seed) - 1))


def fraction(seed: object) -> float:
    """A number from 0 up to 1 that depends on the seed alone."""
    digest = hashlib.sha256(repr(seed).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
