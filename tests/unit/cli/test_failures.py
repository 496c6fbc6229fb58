"""Commands that fail, names that try to act on the reader, and one folder spelt in several ways."""

from __future__ import annotations

import json
import re
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from reconciler.cli.application import application
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


def test_what_a_url_says_in_its_query_is_not_shown() -> None:
    done = headroom(
        "plan", "--cluster", "embedded", "--repo", "https://anna:word@localhost:1/x.git?key=SECRET&token=s3"
    )
    assert "localhost:1/x.git?key=***&token=***" in done.stderr
    assert not {"SECRET", "s3", "word"} & set(re.findall(r"\w+", done.stderr))


# A folder of files whose names and contents try to act on whoever reads the output: every command, every output.

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


# `headroom validate PATH` says the same of a folder however its path is spelt: absolute, relative, through a link.

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a broken template, a file with a warning, and a link to it. The test stands beside it."""
    folder = tmp_path / "capacity"
    (folder / "templates").mkdir(parents=True)
    (folder / "clusters").mkdir()
    (folder / "templates" / "nodeclaim.yaml.j2").write_text("{{ broken")
    (folder / "clusters" / "pool.yaml").write_text(POOL.replace("name: general", "name: general, labels: {x: [1]}"))
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def found(*paths: str) -> tuple[int, set[tuple[str, str]]]:
    """Exit code, and code and file of each finding, files from the top of the repository."""
    done = CliRunner().invoke(application, ["validate", *paths, "--output", "json"], standalone_mode=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return done.return_value, {(row["code"], "/".join(Path(row["file"]).parts[-2:])) for row in rows}


SPELLINGS = [
    "capacity",
    "capacity/",
    "./capacity",
    "link",
    "link/",
    "capacity/../capacity",
    "ABSOLUTE",
    "ABSOLUTE/",
    "LINK",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_folder_finds_the_same(repository: Path, spelling: str) -> None:
    path = spelling.replace("ABSOLUTE", str(repository)).replace("LINK", str(repository.parent / "link"))
    expected = {("template-failed", "templates/nodeclaim.yaml.j2"), ("wrong-type", "clusters/pool.yaml")}
    assert found(path) == (1, expected)
