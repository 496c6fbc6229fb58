"""Parts of sentences that messages of every package share."""

from __future__ import annotations

from collections.abc import Iterable


def abridged(names: Iterable[object], most: int) -> str:
    """`a`, `a, b`, and of more than `most` names `a, b and 7 more`. Messages of ten thousand names help nobody."""
    words = [str(name) for name in names]
    left = len(words) - most
    return ", ".join(words[:most]) + (f" and {left:,} more" if left > 0 else "")
