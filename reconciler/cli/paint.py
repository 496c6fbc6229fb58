"""Colour and line width, on a terminal only. Obeys NO_COLOR and COLUMNS."""

from __future__ import annotations

import os
import shutil
import sys

import click

from reconciler.model.quantity import whole_number
from reconciler.report.terminal import Paint, plain


def paint_for_stdout() -> Paint:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return plain
    return _paint


def width_of_stdout() -> int | None:
    """The columns to wrap at; None if the output is piped, so that lines stay whole."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and (width := whole_number(columns)):
        return width
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _paint(style: str, text: str) -> str:
    if style in {"bold", "dim"}:
        return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
    return click.style(text, fg=style)
