"""`--help` on a narrow terminal: no line is wider than it, and no word is broken that fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import headroom_command


def help_at(columns: int, *words: str) -> list[str]:
    environment = {**os.environ, "COLUMNS": str(columns)}
    return headroom_command.headroom(*words, "--help", folder=Path.cwd(), environment=environment).stdout.splitlines()


@pytest.mark.parametrize("command", [(), ("plan",), ("diff",), ("run",)])
def test_no_line_is_wider_than_a_narrow_terminal(command: tuple[str, ...]) -> None:
    """The exit codes went on to column 90, and option texts were broken within words."""
    lines = help_at(40, *command)
    wide = [line for line in lines if len(line) > 40 and len(line.split()) > 1]
    assert [line for line in wide if not line.startswith("  -")] == [], "an option with its choices is one line"


def test_a_long_option_is_above_its_text() -> None:
    lines = help_at(40, "plan")
    assert "  --revision REF" in lines
    assert "     Branch, tag or commit to read" in lines


def test_short_commands_stay_beside_their_text() -> None:
    assert "  status    How buffers and nodes are." in help_at(40)


def test_a_wide_terminal_has_two_columns() -> None:
    assert any(line.startswith("  --revision REF   ") for line in help_at(100, "plan"))
