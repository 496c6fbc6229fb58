"""Plans of the example repository that are recorded, as `headroom plan --output json` has them. Used by answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path

from click.testing import CliRunner

from reconciler.cli.application import application
from tests.perf.answer import Answer, Questions, of_plan

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-11-21T08:00:00Z"
OPTIMAL = ("--placement-mode", "optimal")
PENDING = ("--include-pending",)


def examples() -> Questions:
    for cluster in ("production", "staging"):
        where = ("--path", f"clusters/{cluster}", "--cluster", f"snapshot:snapshots/{cluster}")
        for name, words in {"": (), " optimal": OPTIMAL, " pending": PENDING}.items():
            yield f"{cluster}{name}", partial(_planned, ROOT / "examples-repo", (*where, *words))


def _planned(folder: Path, words: Sequence[str]) -> Answer:
    """In that folder, so that no answer knows where it was found."""
    with chdir(folder):
        done = CliRunner().invoke(application, ["plan", *words, "--now", NOW, "--output", "json"])
    if done.exit_code not in {0, 1} or not done.stdout:
        return Answer(f"exit code {done.exit_code}", done.stderr)
    return of_plan(json.loads(done.stdout))
