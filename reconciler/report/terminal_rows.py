"""How many rows of one kind a terminal shows, and the line that counts the rest."""

from __future__ import annotations

from collections.abc import Iterable

MOST_ROWS = 40
"""Rows of one kind before the rest is counted: a terminal page. The JSON output has them all."""


def rest_lines(items: Iterable[object]) -> list[str]:
    count = len(list(items)) - MOST_ROWS
    return [f"  … and {count:,} more (--output json has them all)"] if count > 0 else []
