"""Wraps long lines for a narrow terminal, between words. Colours do not count as width."""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST = 24
"""The least number of columns. Narrower lines would hold one word each."""
_FURTHER = 4
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def wrapped(line: str, width: int | None) -> Iterator[str]:
    """The line in pieces of at most `width` columns (None: not wrapped), all but the first indented. A word is never cut."""
    if width is None or _columns(line) <= width:
        yield line
        return
    width = max(width, LEAST)
    words = line.lstrip(" ").split(" ")
    indent = len(line) - len(line.lstrip(" "))
    piece = " " * indent + words[0]
    for word in words[1:]:
        if _columns(piece) + 1 + _columns(word) > width:
            yield piece.rstrip(" ")
            piece = " " * (indent + _FURTHER) + word
        else:
            piece += f" {word}"
    yield piece


def _columns(text: str) -> int:
    return len(_COLOUR.sub("", text))
