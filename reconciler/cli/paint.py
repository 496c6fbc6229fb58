"""Colour on a terminal and nowhere else. Used by the commands that print text; obeys NO_COLOR."""

from __future__ import annotations

import os
import sys

import click

from reconciler.report.text import Paint, plain


def paint_for_stdout() -> Paint:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return plain
    return _paint


def _paint(style: str, text: str) -> str:
    if style in {"bold", "dim"}:
        return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
    return click.style(text, fg=style)
