"""Pictures and pages of schedules from the command line; the pictures in docs/ are held to them.

HEADROOM_GOLDEN=write renews the pictures; look at them in a browser before they are committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from reconciler.cli.application import application
from tests import headroom_command
from tests.goldens import check

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = ROOT / "examples-repo"
PROPOSAL = str(ROOT / "tests" / "cases" / "schedule_of_the_proposal.yaml")
MONDAY = "2026-11-23T18:30:00Z"


def headroom(*words: str) -> Result:
    return CliRunner().invoke(application, words, prog_name="headroom", standalone_mode=False)


def printed(*words: str) -> str:
    done = headroom(*words)
    assert done.return_value == 0, done.output
    return done.stdout


def check_picture(name: str, picture: str) -> None:
    ET.fromstring(picture)
    check(PICTURES / name, picture)


def test_the_picture_of_the_proposals_schedule() -> None:
    check_picture("schedule.svg", printed("schedule", PROPOSAL, "--span", "month", "--now", MONDAY, "--output", "svg"))


def test_the_picture_of_the_examples_week() -> None:
    """In the report, whose times are the machine's own."""
    words = ["plan", "--path", "clusters/production", "--cluster", "snapshot:snapshots/production", "--now", MONDAY]
    environment = {**os.environ, "TZ": "Europe/Berlin"}
    done = headroom_command.headroom(*words, "--output", "html", folder=EXAMPLES, environment=environment)
    assert done.returncode == 1, done.stderr
    (picture,) = re.findall(r"<svg.*</svg>\n", done.stdout, re.DOTALL)
    check_picture("week.svg", picture)


def test_the_page_needs_nothing_from_outside() -> None:
    page = printed("schedule", PROPOSAL, "--now", MONDAY, "--output", "html")
    assert page.startswith("<!doctype html>") or "<!doctype html>" in page[:20]
    assert re.findall(r'\b(?:src|href)="', page) == []
    assert "@import" not in page
    assert "url(" not in page
    assert "fetch(" not in page


@pytest.mark.parametrize("name", ["schedule.svg", "week.svg"])
def test_a_page_of_the_documentation_shows_the_picture(name: str) -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert any(f"pictures/{name}" in page.read_text() for page in pages)
