"""Every command has a docs page, and the page shows the very help that the command prints.

Renew the pages with HEADROOM_GOLDEN=write.
"""

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.application import COMMANDS, application

PAGES = Path(__file__).resolve().parents[3] / "docs" / "commands"
BLOCK = re.compile(r"```text\n(.*?)```", re.DOTALL)


def help_of(name: str) -> str:
    return CliRunner().invoke(application, [name, "--help"], prog_name="headroom", terminal_width=110).output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_shows_its_help(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text()
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        page.write_text(BLOCK.sub(lambda _: f"```text\n{help_of(name)}```", text, count=1))
        text = page.read_text()
    shown = BLOCK.search(text)
    assert shown is not None
    assert shown[1] == help_of(name)


def test_there_are_no_pages_of_other_commands() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(COMMANDS)


@pytest.mark.parametrize("name", ["run", "apply", "snapshot", "release"])
def test_only_clusters_that_a_command_takes_are_named(name: str) -> None:
    assert "snapshot:PATH" not in help_of(name)
    assert "published" not in help_of(name)
