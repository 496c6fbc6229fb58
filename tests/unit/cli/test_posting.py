"""`diff --post` as a person meets it: the report is printed whatever the forge says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.forge_server import Fault, ForgeServer
from tests.fakes.github_api import GitHubState
from tests.git_repository import GitRepository
from tests.headroom_command import headroom_at

ROOT = Path(__file__).resolve().parents[3]
SCAFFOLD = ROOT / "config" / "scaffold"
TOKEN = "of-the-workflow"
FOLDERS = ("before", "after", "--cluster", "embedded")
POST = ("--post", "github", "--pull-request", "7")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two folders, of which the second has a buffer more."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pools.yaml").write_text((SCAFFOLD / "nodepools.yaml").read_text())
    (tmp_path / "after" / "web.yaml").write_text((SCAFFOLD / "buffer-of-pods.yaml").read_text())
    return tmp_path


@pytest.fixture
def state() -> GitHubState:
    return GitHubState()


@pytest.fixture
def forge(state: GitHubState) -> Iterator[ForgeServer]:
    with ForgeServer("/api/v3", f"Bearer {TOKEN}", state.endpoints()) as server:
        yield server


def on(forge: ForgeServer) -> dict[str, str]:
    return {"GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "example/capacity", "GITHUB_TOKEN": TOKEN}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(401, body={"message": "Bad credentials"}), "refused GET /api/v3/repos/example/capacity/pulls/7 (401"),
        (Fault(404), "or the token may not see it"),
    ],
    ids=["401", "404"],
)
def test_the_report_is_printed_also_where_the_forge_refuses_to_be_asked(
    folder: Path, forge: ForgeServer, fault: Fault, words: str
) -> None:
    forge.faults = [fault]
    timings = folder / "timings.json"
    bounds = ("--max-new-nodes", "0", "--timings", str(timings))
    done = headroom_at(folder, "diff", *FOLDERS, *POST, *bounds, "--output", "markdown", **on(forge))
    assert done.returncode == 2
    assert "CapacityBuffer/default/web" in done.stdout
    assert "headroom: nothing was posted on GitHub pull request 7\nheadroom: GitHub " in done.stderr
    assert words in done.stderr
    assert "headroom: up to 1 new node once the cluster has settled" in done.stderr
    assert timings.exists()
    assert TOKEN not in done.stderr
    assert len(forge.asked) == 1  # neither a comment nor a status


@pytest.mark.parametrize(
    ("refused", "code", "words"),
    [
        (["/statuses/"], 2, "a comment was made on GitHub pull request 7; not all was posted\n"),
        (["/comments"], 2, "the status was set on GitHub pull request 7; not all was posted\n"),
        (["/statuses/", "/comments"], 1, "nothing was posted on GitHub pull request 7\n"),
        ([], 1, "a comment was made on GitHub pull request 7\n"),
    ],
    ids=["no statuses", "no comments", "only reading", "all"],
)
def test_what_a_token_may_not_do_is_told_and_a_part_of_it_fails(
    folder: Path, forge: ForgeServer, refused: list[str], code: int, words: str
) -> None:
    """The command said "nothing was posted" where a comment was, and the job was green without a status."""

    def refusal(_match: object, _body: object) -> tuple[int, object]:
        return 403, {"message": "Resource not accessible by integration"}

    forge.endpoints = [
        replace(each, answer=refusal) if each.method == "POST" and any(part in each.path for part in refused) else each
        for each in forge.endpoints
    ]
    repository = {"repo": {"full_name": "example/capacity"}}
    event = {"pull_request": {"number": 7, "head": {"sha": f"{7:040x}", **repository}, "base": repository}}
    (folder / "event.json").write_text(json.dumps(event))
    done = headroom_at(
        folder, "diff", *FOLDERS, "--post", "github", **on(forge), GITHUB_EVENT_PATH=str(folder / "event.json")
    )
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


def test_a_forge_that_cannot_tell_whose_it_is_renders_no_templates_of_the_head(
    folder: Path, forge: ForgeServer
) -> None:
    forge.faults = [Fault(401)]
    template = folder / "after" / "templates" / "nodeclaim.yaml.j2"
    template.parent.mkdir()
    template.write_text("{{ 1 / 0 }}\n")
    done = headroom_at(folder, "diff", *FOLDERS, *POST, **on(forge))
    assert "template-failed" not in done.stdout
    assert "template-failed" in headroom_at(folder, "diff", *FOLDERS).stdout


def test_remarks_beside_lines_name_a_file_by_its_path_in_the_whole_repository(
    tmp_path: Path, state: GitHubState, forge: ForgeServer
) -> None:
    """They named it by its path in the folder that headroom was started in, so that GitHub showed none of them."""
    repository = GitRepository(tmp_path)
    repository.commit({"infra/pools.yaml": (SCAFFOLD / "nodepools.yaml").read_text()})
    buffer = (SCAFFOLD / "buffer-of-pods.yaml").read_text()
    state.pulls[0]["head"]["sha"] = repository.commit({"infra/web.yaml": buffer.replace("replicas:", "replica:")})
    words = ("diff", "HEAD~1..HEAD", "--cluster", "embedded", *POST, "--output", "github")
    done = headroom_at(repository.work / "infra", *words, **on(forge))
    assert "file=infra/web.yaml," in done.stdout, done.stderr
    assert {row["path"] for run in state.runs for row in run} == {"infra/web.yaml"}
    state.runs.clear()
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "pools.yaml").write_text((SCAFFOLD / "nodepools.yaml").read_text())
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": state.pulls[0]}))
    job = {**on(forge), "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    done = headroom_at(repository.work, "diff", str(tmp_path / "before"), "infra", *FOLDERS[2:], *POST, **job)
    assert {row["path"] for run in state.runs for row in run} == {"infra/web.yaml"}, done.stderr
