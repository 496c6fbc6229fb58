"""The GitHub Action, the GitLab template and the pre-commit hook: their own lines are run as those would run them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.forge_server import Fault, ForgeServer
from tests.fakes.github_api import GitHubState
from tests.fakes.gitlab_api import GitLabState
from tests.headroom_command import path_with_headroom

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "config" / "ci" / "github" / "action.yml"
TEMPLATE = ROOT / "config" / "ci" / "gitlab" / "headroom.gitlab-ci.yml"
POOLS = (ROOT / "config" / "scaffold" / "nodepools.yaml").read_text()
BUFFER = (ROOT / "config" / "scaffold" / "buffer-of-pods.yaml").read_text()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a change on top of origin/main: a buffer."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "pools.yaml").write_text(POOLS)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Pools")
    git(folder, "clone", "--quiet", "--bare", ".", str(tmp_path / "origin.git"))
    git(folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(folder, "fetch", "--quiet", "origin")
    (folder / "buffers.yaml").write_text(BUFFER)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "A buffer")
    return folder


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(script: str, folder: Path, *, fails: bool = False, **environment: str) -> str:
    """As the runners do: bash that ends at the first failure. What it printed. fails: whether the job does."""
    base = {"PATH": path_with_headroom(), "HOME": str(folder.parent)}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**base, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert bool(done.returncode) is fails, done.stderr
    return done.stdout + done.stderr


def documents(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("post", "buffer", "faults", "comments", "fails"),
    [
        ("--post github", BUFFER, [], 1, False),
        ("--fork", BUFFER, [], 0, False),
        ("--post github", BUFFER.replace("replicas:", "replica:"), [], 1, True),
        ("--post github", BUFFER, [Fault(403, body={"message": "Resource not accessible by integration"})], 0, False),
    ],
    ids=["own", "fork", "error", "dependabot"],
)
def test_the_action_comments_and_then_fails_for_errors_and_a_fork_has_a_summary_alone(
    clone: Path, tmp_path: Path, post: str, buffer: str, faults: list[Fault], comments: int, *, fails: bool
) -> None:
    """An error ended the job before anything was posted, so that the comment praised the commit before."""
    (clone / "buffers.yaml").write_text(buffer)
    git(clone, "commit", "--quiet", "--all", "--allow-empty", "--message", "A buffer as it may be written")
    state = GitHubState()
    state.pulls[0]["head"]["sha"] = git(clone, "rev-parse", "HEAD")
    steps = {step["name"]: step for step in documents(ACTION)["runs"]["steps"] if "name" in step}
    summary = tmp_path / "summary.md"
    with ForgeServer("/api/v3", "Bearer of-the-workflow", state.endpoints) as server:
        server.faults = list(faults)
        done = run(
            steps["Say what merging would change"]["run"],
            clone,
            fails=fails,
            GITHUB_API_URL=server.url,
            GITHUB_REPOSITORY="example/capacity",
            GITHUB_REF="refs/pull/7/merge",
            GITHUB_BASE_REF="main",
            GITHUB_STEP_SUMMARY=str(summary),
            GITHUB_OUTPUT=str(tmp_path / "output"),
            GITHUB_TOKEN="of-the-workflow",
            RUNNER_TEMP=str(tmp_path),
            HEADROOM_CLUSTER="embedded",
            HEADROOM_PATH="",
            HEADROOM_CATALOG="",
            ARGUMENTS="--max-new-nodes 50",
            POST=post,
        )
    assert server.mistakes == []
    assert "buffers.yaml" in summary.read_text() if fails else "CapacityBuffer/default/web" in summary.read_text()
    assert len(state.comments) == comments
    assert ("Resource not accessible" in done) == bool(faults)


def test_every_input_of_the_action_is_used_and_every_used_one_is_there() -> None:
    action = documents(ACTION)
    text = yaml.safe_dump(action["runs"])
    for name in action["inputs"]:
        assert f"inputs.{name}" in text
    assert text.count("inputs.") == len(action["inputs"])


def test_the_gitlab_template_checks_and_comments(clone: Path) -> None:
    state = GitLabState()
    head = git(clone, "rev-parse", "HEAD")
    state.requests[0]["sha"] = head
    job = documents(TEMPLATE)[".headroom"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    asked = "https://gitlab-ci-token:of-the-job@git.example.com/platform/capacity.git"
    with ForgeServer("/api/v4", "Bearer of-the-project", state.endpoints) as server:
        run(
            script,
            clone,
            **job["variables"],
            GITLAB_TOKEN="of-the-project",
            CI_API_V4_URL=server.url,
            CI_PROJECT_ID="platform/capacity",
            CI_JOB_TOKEN="of-the-job",
            CI_MERGE_REQUEST_PROJECT_URL="https://git.example.com/platform/capacity",
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0=f"url.{clone.parent / 'origin.git'}.insteadOf",
            GIT_CONFIG_VALUE_0=asked,
            CI_MERGE_REQUEST_IID="7",
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
            CI_COMMIT_SHA=head,
        )
    assert server.mistakes == []
    (note,) = state.notes
    assert "CapacityBuffer/default/web" in note["body"]
    assert (clone / "report.md").exists()


def test_the_hook_fails_where_a_manifest_is_wrong(clone: Path) -> None:
    (hook,) = documents(ROOT / ".pre-commit-hooks.yaml")
    assert not hook["pass_filenames"]
    run(hook["entry"], clone)
    (clone / "buffers.yaml").write_text(BUFFER.replace("replicas:", "replica:"))
    with pytest.raises(AssertionError):
        run(hook["entry"], clone)
