"""The most rows of one kind on a terminal, and the line that counts the rest."""

from __future__ import annotations

from collections.abc import Iterable

MOST_ROWS = 40
"""The most rows of one kind, about a terminal page. The JSON output has all of them."""


def rest_lines(items: Iterable[object]) -> list[str]:
    count = len(list(items)) - MOST_ROWS
    return [f"  … and {count:,} more (--output json has them all)"] if count > 0 else []
