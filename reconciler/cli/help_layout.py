"""The layout of `--help` on narrow terminals, where two columns would break words in the middle."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import click

_NARROW = 60
"""Columns below which long options are on a line of their own, with their text below."""
_LEAST = 30


class HelpLayout(click.HelpFormatter):
    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(shutil.get_terminal_size().columns, max_width or 80)
        super().__init__(indent_increment, width or max(columns - 2, _LEAST), max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        listed = list(rows)
        is_stacked = self.width < _NARROW and any(len(term) > self.width // 3 for term, _ in listed)
        super().write_dl(listed, 1 if is_stacked else col_max, col_spacing)

    def write_text(self, text: str) -> None:
        """Lines that are not to be joined (marked with `\\b`) are wrapped one by one where they are too long."""
        if self.width >= _NARROW:
            super().write_text(text)
            return
        for number, paragraph in enumerate(text.split("\n\n")):
            self.write("\n" if number else "")
            if not paragraph.startswith("\b"):
                super().write_text(paragraph)
                continue
            for line in paragraph.split("\n")[1:]:
                indent = " " * (self.current_indent + len(line) - len(line.lstrip()))
                wrapped = textwrap.fill(
                    " ".join(line.split()),
                    self.width,
                    initial_indent=indent,
                    subsequent_indent=f"{indent}  ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                self.write(f"{wrapped}\n")
