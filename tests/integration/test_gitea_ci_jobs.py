"""Every CI file that comes with headroom, run line by line for pull requests of a real forge: errors, forks, conflicts, tokens.

GitHub's are run with Gitea's API, which answers what they ask as GitHub does. Of GitLab's the Git is real; its API is in tests/config.
"""

from __future__ import annotations

import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.settings.settings import Settings
from reconciler.wiring.snapshot_publisher import SnapshotPublisher
from tests.controlplane.gitea import Gitea
from tests.fakes.clock import ManualClock
from tests.fakes.played_cluster import PlayedCluster
from tests.integration.ci_jobs import ROOT, Job
from tests.integration.gitea_repository import GiteaRepository, buffer

pytestmark = pytest.mark.e2e
ACTION = "config/ci/github/action.yml"
FILES = ("config/scaffold/ci/gitea.yaml", "config/scaffold/ci/github.yaml", ACTION)
GITLAB = ("config/scaffold/ci/gitlab.yaml", "config/ci/gitlab/headroom.gitlab-ci.yml")
WRONG = buffer("api", 5).replace("replicas: 5", "replicas: five")


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, tmp_path)


def document(file: str) -> Any:
    return yaml.safe_load((ROOT / file).read_text())


def job(repository: GiteaRepository, number: int | None, *, token: str = "", headroom: str = "") -> Job:
    """What the runner knows of a pull request, or without a number of a push. It works in a clone of its own of what is checked out here."""
    gitea, place = repository.gitea, Path(tempfile.mkdtemp(dir=repository.work.parent))
    repository.git("clone", "--quiet", "--no-local", ".", str(place / "checkout"))
    event: dict[str, Any] = {}
    if number is not None:
        event = {"pull_request": gitea.api("GET", f"/repos/{repository.name}/pulls/{number}")}
    fetched = ("-C", str(place / "checkout"))
    repository.git(*fetched, "remote", "set-url", "origin", repository.git("remote", "get-url", "origin"))
    repository.git(*fetched, "fetch", "--quiet", "--prune", "origin")
    files = {name: str(place / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH")}
    Path(files["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    environment = {
        **files,
        "GITHUB_API_URL": f"{gitea.url}/api/v1",
        "GITHUB_SERVER_URL": gitea.url,
        "GITHUB_REPOSITORY": repository.name,
        "GITHUB_BASE_REF": "main",
        "GITHUB_RUN_ID": "71",
        "GITHUB_RUN_NUMBER": "7",
        "RUNNER_TEMP": str(place),
        "GITHUB_REF": f"refs/pull/{number}/head",
        "GITHUB_ACTION_PATH": str(ROOT / "config/ci/github"),
        # The line that installs is tried. The command is that of this checkout.
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DRY_RUN": "1",
        "HEADROOM": headroom or str(ROOT),
    }
    known = {"event_name": "push" if number is None else "pull_request", "token": token or gitea.token, "event": event}
    inputs = {name: item.get("default", "") for name, item in document(ACTION)["inputs"].items()}
    context = {
        "github": {**known, "repository": repository.name},
        "inputs": {**inputs, "token": known["token"]},
        "runner": {"temp": str(place)},
    }
    return Job(place / "checkout", {**context, "steps": {}}, environment)


def run(file: str, repository: GiteaRepository, number: int | None, **words: str) -> Job:
    done = job(repository, number, **words)
    read = document(file)
    if "runs" in read:
        done.steps(read["runs"]["steps"])
    else:
        done.steps(read["jobs"]["capacity"]["steps"])
    summary = Path(done.environment["GITHUB_STEP_SUMMARY"])
    done.log += summary.read_text() if summary.exists() else ""
    assert repository.gitea.token not in done.log
    return done


@pytest.mark.parametrize("file", FILES)
def test_a_pull_request_is_told_and_then_fails_for_its_own_errors_alone(repository: GiteaRepository, file: str) -> None:
    repository.publish("main", {"api.yaml": buffer("api", 5), "old.yaml": WRONG.replace("name: api", "name: old")})
    repository.publish("less", {"api.yaml": buffer("api", 2)}, start="main")
    number = repository.open_pull_request("less")
    done = run(file, repository, number)
    assert not done.failed, done.log
    (comment,) = repository.comments(number)
    (line,) = re.findall(r"^\*\*.*$", comment["body"], re.MULTILINE)
    assert line.startswith("**Less room: default/api 5 → 2 chunks (2 requested); 1 error that main has too; "), line
    assert f"[All of it on one page]({repository.gitea.url}/{repository.name}/actions/runs/7" in comment["body"]
    assert "at sample prices" in line, "in CI without a catalog there are no others"
    assert [path.name for path in done.kept] == ["report.html"]

    repository.publish("less", {"api.yaml": WRONG})
    done = run(file, repository, number)
    assert done.failed
    (told,) = repository.comments(number)
    assert told["id"] == comment["id"]
    assert "1 new error" in told["body"]
    assert [path.name for path in done.kept] == ["report.html"], "what a job keeps, it keeps when it fails"

    repository.git("checkout", "--quiet", "main")
    repository.publish("main", {"api.yaml": buffer("api", 50), "late.yaml": buffer("late", 7)})
    repository.git("checkout", "--quiet", "less")
    repository.publish("less", {"api.yaml": buffer("api", 4)})
    assert not run(file, repository, number).failed
    (told,) = repository.comments(number)
    assert "Not merged, since api.yaml is in conflict" in told["body"]
    assert "default/api 5 → 4 chunks" in told["body"]
    assert not re.search(r"\b50 →|→ 50\b", told["body"]), "that is main's own change"


@pytest.mark.parametrize("file", FILES)
def test_a_fork_and_a_token_that_may_only_read_have_the_report_in_the_log(
    repository: GiteaRepository, file: str
) -> None:
    other = re.sub(r"\W", "-", repository.name)
    theirs = repository.gitea.add_user(other, scopes="read:repository,read:issue,read:user")
    repository.gitea.api("PUT", f"/repos/{repository.name}/collaborators/{other}", {"permission": "read"})
    repository.publish("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    done = run(file, repository, number, token=theirs)
    assert not done.failed, done.log
    assert "nothing was posted" in done.log
    assert "default/api new (5 chunks)" in done.log
    assert repository.comments(number) == []

    fork = repository.fork(other)
    repository.git("checkout", "--quiet", "-b", "evil", "main")
    repository.publish(
        "evil", {"templates/nodeclaim.yaml.j2": "{{ 1 / 0 }}\n", "evil.yaml": buffer("evil", 9)}, to=fork
    )
    number = repository.open_pull_request("evil", head=f"{other}:evil")
    done = run(file, repository, number)
    assert not done.failed, done.log
    assert "Not judged: templates/nodeclaim.yaml.j2" in done.log
    assert "template-failed" not in done.log
    assert repository.comments(number) == []


def test_what_a_token_may_not_do_is_told_and_the_head_has_the_word_at_any_instant(repository: GiteaRepository) -> None:
    """A run told "nothing was posted" beside its comment. A commit's report was stale for its hash, and for an earlier `--now`."""
    other = re.sub(r"\W", "-", repository.name)
    theirs = repository.gitea.add_user(other, scopes="read:repository,write:issue,read:user")
    repository.gitea.api("PUT", f"/repos/{repository.name}/collaborators/{other}", {"permission": "read"})
    number = 0

    def posted(token: str, now: str) -> Job:
        done = job(repository, number)
        words = f"headroom diff origin/main..HEAD --post gitea --cluster embedded --now {now} || test $? = 1"
        done.script(words, {"GITEA_TOKEN": token})
        return done

    commit = repository.publish("more", {"api.yaml": buffer("api", 2)}, start="main")
    number = repository.open_pull_request("more")
    done = posted(theirs, "2026-12-24T08:00:00Z")
    assert done.failed, done.log
    assert f"a comment was made on Gitea pull request {number}; not all was posted" in done.log
    (comment,) = repository.comments(number)
    assert repository.statuses(commit) == {}
    repository.gitea.api("DELETE", f"/repos/{repository.name}/issues/comments/{comment['id']}")

    for replicas, now in (
        (6, "2026-12-24T08:00:00Z"),
        (3, "2026-12-24T08:00:00Z"),
        (4, "2026-11-26T08:00:00Z"),
        (5, "2026-01-01T00:00:00Z"),
    ):
        commit = repository.publish("more", {"api.yaml": buffer("api", replicas)})
        done = posted(repository.gitea.token, now)
        assert not done.failed, done.log
        (told,) = repository.comments(number)
        assert f"default/api new ({replicas} chunks)" in told["body"]
        assert set(repository.statuses(commit)) == {"headroom/plan"}


@pytest.mark.parametrize("file", FILES)
def test_a_push_to_main_fails_for_errors_and_not_for_warnings(repository: GiteaRepository, file: str) -> None:
    repository.publish("main", {"web.yaml": buffer("web", 3).replace("replicas: 3", "replicas: 3, colour: red")})
    done = run(file, repository, None)
    assert "spec.colour is not a field of this kind" in done.log
    assert not done.failed, done.log
    repository.publish("main", {"api.yaml": WRONG})
    done = run(file, repository, None)
    assert done.failed
    assert "spec.replicas must be a whole number" in done.log


@pytest.mark.parametrize("file", [*FILES[:2], *GITLAB])
def test_where_headroom_is_must_be_said_and_the_job_says_so(repository: GiteaRepository, file: str) -> None:
    read = document(file)
    unset = (read.get("env") or next(iter(read.values()))["variables"])["HEADROOM"]
    done = job(repository, None, headroom=unset)
    lines = (
        read["jobs"]["capacity"]["steps"]
        if "jobs" in read
        else [{"run": line} for line in next(iter(read.values()))["script"]]
    )
    done.steps(lines[:3] if "jobs" in read else lines[:1])
    assert done.failed
    assert "must say where your copy of headroom is" in done.log


@pytest.mark.parametrize("file", GITLAB)
def test_gitlab_compares_with_the_head_of_the_target_also_from_a_fork_that_is_behind(
    repository: GiteaRepository, file: str
) -> None:
    other = re.sub(r"\W", "-", repository.name)
    repository.gitea.add_user(other)
    repository.gitea.api("PUT", f"/repos/{repository.name}/collaborators/{other}", {"permission": "read"})
    fork = repository.fork(other)
    repository.publish("main", {"late.yaml": buffer("late", 7)})
    url = repository.gitea.git_url(repository.name, token=repository.gitea.token)
    clock = ManualClock(datetime(2026, 11, 27, 12, tzinfo=UTC))
    snapshots = SnapshotPublisher(Settings(repository=url), PlayedCluster(clock, real_time=False), clock)
    assert snapshots.publish() == "published"
    repository.git("checkout", "--quiet", "-b", "more", "HEAD~1")
    repository.publish("more", {"web.yaml": buffer("web", 2)}, to=fork)
    repository.git("remote", "set-url", "origin", fork)
    done = job(repository, None)
    (read,) = document(file).values()
    project = f"{repository.gitea.url}/{repository.name}"
    variables = {
        **{name: value for name, value in read["variables"].items() if name != "HEADROOM"},
        "CI_MERGE_REQUEST_PROJECT_URL": project,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2",
        "HEADROOM_CLUSTER": "published",
    }
    script = "\n".join(read["script"]).replace("PLANNED_ON", "published")
    done.script(script, {**variables, "CI_JOB_TOKEN": repository.gitea.token})
    assert not done.failed, done.log
    assert "Less room: default/web 3 → 2 chunks" in done.log
    assert "late" not in done.log, "main has gained it, and the fork has not"
    assert "planned on published:headroom/snapshot" in done.log, "which the target has, and the fork has not"
    assert (
        set(read["artifacts"]["paths"]) == {"report.md", "report.html"} <= {path.name for path in done.folder.iterdir()}
    )
    assert read["artifacts"]["when"] == "always"

    refused = job(repository, None)
    refused.script("\n".join(read["script"]), {**variables, "CI_JOB_TOKEN": "f" * 40})
    assert refused.failed
    assert "Job token permissions" in refused.log
