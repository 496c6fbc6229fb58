"""`.sourceignore` against git itself, which reads the same syntax."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from reconciler.source.selection import parse_rules, verdict

NAMES = ("a", "b", "ab", "ba", "aab", "a.yaml", "b-a", "!a", "#a", "a b", "[a]", "a]")
PIECES = ("a", "b", "*", "**", "?", "/", "**/", "/**", "[ab]", "[!a]", "[^b-z]", "[]a]", "\\a", "\\[", ".", "!", "#", " ")  # fmt: skip


def left_out_by_git(folder: Path, patterns: str, paths: list[str]) -> set[str]:
    (folder / ".gitignore").write_text(patterns)
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=folder,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    return {path for path in done.stdout.decode().split("\0") if path}


def left_out_here(patterns: str, path: str) -> bool:
    """As a walk asks: a folder that is left out takes all that is in it along."""
    rules = parse_rules(patterns)
    parts = path.split("/")
    steps = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(verdict(rules, step, folder=step != path) for step in steps[:-1]) or bool(
        verdict(rules, path, folder=False)
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("seed", range(60))
def test_the_same_paths_as_git(seed: int, repository: Path) -> None:
    draw = random.Random(seed)
    for _ in range(5):
        lines = ["".join(draw.choices(PIECES, k=draw.randint(1, 6))) for _ in range(draw.randint(1, 4))]
        paths = sorted({"/".join(draw.choices(NAMES, k=draw.randint(1, 4))) for _ in range(30)})
        # git itself takes `a**/b` for `a` and `**/b` where only letters stand before the stars
        patterns = "\n".join(line for line in lines if not re.search(r"[^/*]\*\*|\*\*[^/*]", line))
        here = {path for path in paths if left_out_here(patterns, path)}
        assert here == left_out_by_git(repository, patterns, paths), patterns


@pytest.mark.parametrize(
    "pattern", ["*a*a*a*a*a*b", "*a" * 400 + "b", "**/a" * 200 + "/b", "[a]*" * 300 + "b", "*" * 5_000 + "b"]
)
def test_no_pattern_is_slow_on_a_long_name(pattern: str) -> None:
    """One that backtracks would not come to an end."""
    rules = parse_rules(pattern)
    for path in ("a" * 5_000, "/".join("a" * 200), "a" * 5_000 + "c"):
        assert not verdict(rules, path, folder=False)
