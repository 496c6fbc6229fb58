"""The GitLab template and the pre-commit hook: their own lines are run as those would run them. The CI files are run on a real forge too, in
tests/integration/test_gitea_ci_jobs.py, GitHub's and Gitea's there alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.forge_server import ForgeServer
from tests.fakes.gitlab_api import GitLabState
from tests.git_repository import GitRepository
from tests.headroom_command import path_with_headroom
from tests.programs import ended

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "config" / "ci" / "github" / "action.yml"
TEMPLATE = ROOT / "config" / "ci" / "gitlab" / "headroom.gitlab-ci.yml"
SCAFFOLD = ROOT / "config" / "scaffold"
POOLS = (SCAFFOLD / "nodepools.yaml").read_text()
BUFFER = (SCAFFOLD / "buffer-of-pods.yaml").read_text()


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """With a change on top of origin/main: a buffer."""
    made = GitRepository(tmp_path)
    made.push({"pools.yaml": POOLS})
    made.git("remote", "add", "origin", str(made.remote))
    made.git("fetch", "--quiet", "origin")
    made.commit({"buffers.yaml": BUFFER})
    return made


def run(script: str, folder: Path, **environment: str) -> None:
    """As the runners do: bash that ends at the first failure."""
    base = {"PATH": path_with_headroom(), "HOME": str(folder.parent)}
    done = ended("bash", "-e", "-o", "pipefail", "-c", script, folder=folder, env={**base, **environment})
    assert done.returncode == 0, done.stderr


def documents(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_every_input_of_the_action_is_used_and_every_used_one_is_there() -> None:
    action = documents(ACTION)
    text = yaml.safe_dump(action["runs"])
    for name in action["inputs"]:
        assert f"inputs.{name}" in text
    assert text.count("inputs.") == len(action["inputs"])


@pytest.mark.parametrize("file", [TEMPLATE, SCAFFOLD / "ci" / "gitlab.yaml"], ids=["template", "scaffold"])
def test_gitlabs_files_check_and_comment(repository: GitRepository, file: Path) -> None:
    state = GitLabState()
    head = repository.git("rev-parse", "HEAD")
    state.pulls[0]["sha"] = head
    (job,) = documents(file).values()
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    script = script.replace(" --path clusters/CLUSTER", "").replace("PLANNED_ON", "embedded")
    asked = "https://gitlab-ci-token:of-the-job@git.example.com/platform/capacity.git"
    with ForgeServer("/api/v4", "Bearer of-the-project", state.endpoints()) as server:
        run(
            script,
            repository.work,
            **job["variables"],
            GITLAB_TOKEN="of-the-project",
            CI_API_V4_URL=server.url,
            CI_PROJECT_ID="platform/capacity",
            CI_JOB_TOKEN="of-the-job",
            CI_MERGE_REQUEST_PROJECT_URL="https://git.example.com/platform/capacity",
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0=f"url.{repository.remote}.insteadOf",
            GIT_CONFIG_VALUE_0=asked,
            CI_MERGE_REQUEST_IID="7",
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
            CI_COMMIT_SHA=head,
        )
    assert server.mistakes == []
    (note,) = state.comments
    assert "CapacityBuffer/default/web" in note["body"]
    assert [status["state"] for status in state.statuses] == ["success"]
    assert (repository.work / "report.md").exists()


def test_the_hook_fails_where_a_manifest_is_wrong(repository: GitRepository) -> None:
    (hook,) = documents(ROOT / ".pre-commit-hooks.yaml")
    assert not hook["pass_filenames"]
    run(hook["entry"], repository.work)
    (repository.work / "buffers.yaml").write_text(BUFFER.replace("replicas:", "replica:"))
    with pytest.raises(AssertionError):
        run(hook["entry"], repository.work)
