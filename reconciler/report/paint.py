"""Colours for text on a terminal. Commands decide whether to use them."""

from __future__ import annotations

from collections.abc import Callable

Paint = Callable[[str, str], str]
"""Gets a style (bold, dim, red, green, yellow, cyan) and a text; returns the coloured text, or the same text without colour."""


def plain(_style: str, text: str) -> str:
    """The text without colour."""
    return text
