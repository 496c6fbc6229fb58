"""Instants at which something changes by the clock alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Edge:
    """An instant at which what is declared changes. why: the reason in words, for status and logs."""

    at: datetime
    why: str
