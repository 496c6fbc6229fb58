"""Commands that fail: their exit codes, which scripts rely on, and what they say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import headroom_command

ROOT = Path(__file__).resolve().parents[3]


def headroom(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig")}
    return headroom_command.headroom(*words, folder=folder, environment=base)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan", "--cluster", "moon"), 2),
        (("plan", "--detailed-exitcode", "--cluster", "moon"), 1),
        (("plan", "--no-such-flag"), 2),
        (("plan", "--detailed-exitcode", "--no-such-flag"), 1),
        (("diff", "main"), 2),
        (("apply", "--cluster", "moon"), 2),
        (("release", "--all", "--cluster", "moon"), 2),
        (("explain", "x", "--cluster", "snapshot:nowhere"), 2),
        (("snapshot", "-o", "x", "--cluster", "moon"), 2),
        (("schedule", "--repo", "nowhere"), 2),
        (("init", "schedule", "--window", "whenever", "--replicas", "1"), 2),
        (("budgets", "--config", "nowhere.yaml"), 2),
        (("apply", "--no-such-flag"), 2),
        (("validate", "--output", "xml"), 2),
        (("run", "--cluster", "snapshot:x"), 2),
        (("polish",), 2),
        (("schema", "plan.v9"), 2),
    ],
)
def test_failures_exit_as_the_contract_says_and_never_show_a_traceback(words: tuple[str, ...], code: int) -> None:
    done = headroom(*words)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_without_a_cluster_the_choices_are_named() -> None:
    done = headroom("plan", folder=ROOT / "docs")
    assert done.returncode == 2
    assert "snapshot:PATH" in done.stderr
    assert "embedded" in done.stderr


KUBECONFIG = """
current-context: dead
contexts: [{name: dead, context: {cluster: dead, user: dead}}]
clusters: [{name: dead, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: dead, user: {token: secret}}]
"""


@pytest.mark.parametrize("words", [("plan",), ("diff", "before", "after")])
def test_an_api_server_that_does_not_answer_is_told_without_a_revision(tmp_path: Path, words: tuple[str, ...]) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    said = headroom(*words, folder=tmp_path).stderr.splitlines()
    assert "headroom: https://127.0.0.1:1 does not answer: Connection refused" in said


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan",), 2),
        (("plan", "--detailed-exitcode"), 1),
        (("diff", "before", "after"), 2),
        (("apply",), 1),
        (("budgets",), 1),
        (("explain", "web"), 1),
        (("snapshot", "-o", "cluster"), 1),
        (("release", "--all"), 1),
        (("run",), 1),
    ],
)
def test_without_a_cluster_every_command_exits_by_the_rule_that_help_states(
    tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    done = headroom(*words, folder=tmp_path)
    assert done.returncode == code
    assert "there is no cluster here" in done.stderr
    stated = headroom("--help").stdout
    assert "plan, diff   0 no change, 1 changes, 2 any error" in stated
    assert "all others   0 done, 1 a failure, 2 wrong usage" in stated


def test_what_git_could_not_do_is_told_once(tmp_path: Path) -> None:
    said = headroom("plan", "--repo", "https://127.0.0.1:1/x.git", "--cluster", "embedded").stderr.splitlines()
    assert said[0].startswith("headroom: cannot read https://127.0.0.1:1/x.git: Failed to connect to 127.0.0.1 port 1 ")
    assert said[1:] == ["  check the address and the network; the daemon tries again by itself"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    said = headroom("plan", "--revision", "v2", "--cluster", "embedded", folder=tmp_path).stderr.splitlines()
    assert said[0].endswith(" has no revision 'v2'")
    assert [line.partition(",")[0] for line in said[1:]] == ["  name a branch"]


@pytest.mark.parametrize("words", [["validate"], ["plan", "--cluster", "embedded", "--repo"], ["schedule"]])
@pytest.mark.parametrize("scheme", ["", "file:///"])
def test_a_path_of_6000_characters_is_wrong_usage(words: list[str], scheme: str) -> None:
    done = headroom(*words, f"{scheme}{'a' * 6000}")
    assert "is not a path: it has 6,0" in done.stderr
    assert "internal error" not in done.stderr


def test_what_a_url_says_in_its_query_is_not_shown() -> None:
    done = headroom(
        "plan", "--cluster", "embedded", "--repo", "https://anna:word@localhost:1/x.git?key=SECRET&token=s3"
    )
    assert "localhost:1/x.git?key=***&token=***" in done.stderr
    assert not {"SECRET", "s3", "word"} & set(re.findall(r"\w+", done.stderr))
