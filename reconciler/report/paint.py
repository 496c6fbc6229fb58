"""How text for a terminal is coloured. The commands decide whether it is."""

from __future__ import annotations

from collections.abc import Callable

Paint = Callable[[str, str], str]
"""Style name (bold, dim, red, green, yellow, cyan) and text → text; returns the text itself where there is no colour."""


def plain(_style: str, text: str) -> str:
    """No colour at all."""
    return text
