"""How full buffers were over the last days, and what all nodes cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class FillPoint:
    """What holds from `since` until the next point. wanted, ready: chunks. price: USD an hour of all nodes; 0 of one buffer's points.

    Of several passes that one point stands for: the one with the largest shortage, and the last price.
    """

    since: datetime
    wanted: int
    ready: int
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Refill:
    """A shortage that has ended. seconds: how long it lasted."""

    ended: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class BufferPast:
    """points: a point for each change, the oldest first. refills: the newest first."""

    points: tuple[FillPoint, ...] = ()
    refills: tuple[Refill, ...] = ()
