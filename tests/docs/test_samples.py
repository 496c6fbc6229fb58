"""The samples of docs/commands are what the commands print: each block after "In `examples-repo/`" is typed there, and compared line by
line. `…` stands for lines that are left out."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.headroom_command import path_with_headroom
from tests.programs import ended

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "commands"
SAMPLE = re.compile(r"In `examples-repo/`[^\n]*:\n\n```console\n(.*?)```", re.DOTALL)
WITHOUT_SAMPLE = {"budgets", "diff", "release", "schedule", "snapshot", "status"}
"""Their pages show what depends on a cluster, or on documents that other tests render (tests/unit/cli, tests/golden)."""


def samples() -> dict[str, str]:
    pages = {page.stem: SAMPLE.findall(page.read_text(encoding="utf-8")) for page in sorted(PAGES.glob("*.md"))}
    return {name: "".join(blocks) for name, blocks in pages.items() if blocks}


def pattern(shown: str) -> str:
    lines = [r"(?:.*\n)*" if line == "…" else re.escape(line) + r"\n" for line in shown.splitlines()]
    return "".join(lines).replace("…", r".*")


def test_every_command_has_one() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - samples().keys() == WITHOUT_SAMPLE


@pytest.mark.parametrize("block", samples().values(), ids=samples())
def test_a_sample_is_what_the_command_prints(block: str, tmp_path: Path) -> None:
    folder = tmp_path / "examples-repo"
    shutil.copytree(ROOT / "examples-repo", folder)
    environment = {
        "PATH": path_with_headroom(),
        "HOME": str(tmp_path),
        "TZ": "Europe/Berlin",
        "HEADROOM_LISTEN": "127.0.0.1:0",
        "KUBECONFIG": os.devnull,
    }
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        done = ended("bash", "-c", command, folder=folder, env=environment)
        lines = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
        printed = "".join(
            f"{line}\n" for line in lines if not line.startswith("… ")
        )  # what a slow command tells meanwhile
        assert re.fullmatch(pattern(shown), printed), printed
