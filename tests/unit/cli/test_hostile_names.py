"""A folder of files whose names and contents try to act on whoever reads the output: every command, every output."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from reconciler.cli.application import application

NOW = "2026-11-23T08:00:00Z"
NAMES = (
    "a\n::error file=x::forged.yaml",
    "b`](https://evil.example) ![p](https://evil.example/p.png) `.yaml",
    "c\x1b[2J\x1b]0;title\x07.yaml",
    "d\u202egpj.yaml",
    "::error::forged.yaml",
)
WRONG = 'apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: "x\\n# Approved\\u202e"}\nspec: {wieght: 1, "\\u001b[31m": 1}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name.replace("/", "_")).write_text(WRONG)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(application, words, prog_name="headroom", standalone_mode=False)


def is_clean(text: str) -> bool:
    return all(unicodedata.category(letter) not in {"Cc", "Cf", "Cs"} or letter in "\n\u200b" for letter in text)


@pytest.mark.parametrize("output", ["text", "github", "json", "sarif"])
def test_validate(folder: Path, output: str) -> None:
    done = run("validate", str(folder), "--output", output)
    assert done.return_value == 1
    assert is_clean(done.output)
    commands = [line for line in done.output.splitlines() if line.lstrip().startswith("::")]
    assert bool(commands) == (output == "github")
    assert all(re.match(r"::(error|warning|notice) file=[^:,]*,line=\d+,", line) for line in commands)
    if output in {"json", "sarif"}:
        json.loads(done.output)


@pytest.mark.parametrize("command", ["schedule", "budgets"])
def test_the_commands_that_show_findings_beside_a_table(folder: Path, command: str) -> None:
    words = {"schedule": (str(folder),), "budgets": ("--repo", str(folder), "--nodes", "3")}[command]
    done = run(command, *words, "--now", NOW)
    assert is_clean(done.output)
    assert not any(line.lstrip().startswith("::") for line in done.output.splitlines())


def test_the_pull_request_comment(folder: Path) -> None:
    done = run("plan", "--repo", str(folder), "--cluster", "embedded", "--output", "markdown", "--now", NOW)
    assert is_clean(done.output)
    tokens = [child for token in MarkdownIt().parse(done.output) for child in [token, *(token.children or [])]]
    assert not {"link_open", "image"} & {token.type for token in tokens}
    headings = [token for token in tokens if token.type == "heading_open"]
    assert [token.tag for token in headings] == ["h2", "h3"]


@pytest.mark.parametrize("output", ["text", "html", "json"])
def test_a_plan(folder: Path, output: str) -> None:
    done = run("plan", "--repo", str(folder), "--cluster", "embedded", "--output", output, "--now", NOW)
    assert done.return_value in {0, 1}
    assert is_clean(done.output)
