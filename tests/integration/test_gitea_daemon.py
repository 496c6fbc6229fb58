"""The daemon on a real forge: it clones with a token, takes signed webhooks, and reports on pull requests by itself."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.controlplane.gitea import Gitea
from tests.controlplane.ports import free_port
from tests.integration.gitea_daemon import GiteaDaemon
from tests.integration.gitea_repository import GiteaRepository, buffer

pytestmark = pytest.mark.e2e
SECRET = "shared-with-the-forge"


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, tmp_path)


def add_webhook(repository: GiteaRepository, port: int, secret: str) -> None:
    config = {"url": f"http://127.0.0.1:{port}/webhook", "content_type": "json", "secret": secret}
    events = ["push", "pull_request", "pull_request_sync"]
    path = f"/repos/{repository.name}/hooks"
    repository.gitea.api("POST", path, {"type": "gitea", "config": config, "events": events, "active": True})


def refused(port: int, **headers: str) -> int:
    """The status that an unsigned webhook is answered with."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/webhook", data=b'{"ref": "refs/heads/main"}', headers=headers, method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(request, timeout=10)
    answer.value.close()
    return answer.value.code


def test_a_signed_webhook_starts_a_poll_at_once_and_an_unsigned_one_is_refused(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    port = free_port()
    listen = {"WEBHOOKS_LISTEN": f"127.0.0.1:{port}", "WEBHOOK_SECRET": SECRET}
    with GiteaDaemon(repository, tmp_path, **listen) as daemon:
        assert refused(port, **{"X-Gitea-Event": "push"}) == 401
        assert refused(port, **{"X-Gitea-Event": "push", "X-Gitea-Signature": "0" * 64}) == 401
        add_webhook(repository, port, SECRET)
        commit = repository.publish("main", {"web.yaml": buffer("web", 4)})

        def took_over() -> bool:
            return str(daemon.status()["revision"]).endswith(commit)

        eventually(took_over, within=30, what="the daemon reads what was pushed, an hour before its next poll")
        assert daemon.metric('headroom_webhooks_total{result="unsigned"} 2.0')
        assert daemon.metric('headroom_webhooks_total{result="taken"} 1.0')
        assert SECRET not in daemon.log()


def test_the_daemon_reports_on_pull_requests_and_not_with_the_templates_of_a_fork(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    port = free_port()
    add_webhook(repository, port, SECRET)
    pages = "https://headroom.example.com"
    settings = {
        "WEBHOOKS_LISTEN": f"127.0.0.1:{port}",
        "WEBHOOK_SECRET": SECRET,
        "FORGE_REPORTS": "true",
        "FORGE_PAGES": pages,
    }
    head = repository.publish("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    with GiteaDaemon(repository, tmp_path, **settings) as daemon:

        def says(words: str) -> bool:
            comments = repository.comments(number)
            assert len(comments) <= 1
            return bool(comments) and words in comments[0]["body"]

        eventually(lambda: says("absent → 5"), within=60, what="the daemon reports on the pull request")
        eventually(lambda: "headroom/plan" in repository.statuses(head), within=60, what="the status is set")
        assert says(f"[All of it on one page]({pages}/pulls/{number})")
        assert "CapacityBuffer/default/api" in daemon.fetch(f"/pulls/{number}")
        # Only main has this by now; merging takes none of it back.
        repository.git("checkout", "--quiet", "main")
        repository.publish("main", {"late.yaml": buffer("late", 7)})
        repository.git("checkout", "--quiet", "more")
        repository.publish("more", {"api.yaml": buffer("api", 6)})
        eventually(lambda: says("absent → 6"), within=60, what="the daemon follows the pull request")
        assert not says("→ absent")

        other = re.sub(r"\W", "-", repository.name)
        theirs = repository.gitea.add_user(other)
        path = f"/repos/{repository.name}/collaborators/{other}"
        repository.gitea.api("PUT", path, {"permission": "read"})
        repository.gitea.api("POST", f"/repos/{repository.name}/forks", {"name": "fork"}, token=theirs)
        fork = repository.gitea.git_url(f"{other}/fork").replace("://", f"://{other}:{theirs}@")
        repository.git("checkout", "--quiet", "-b", "evil", "main")
        files = {"templates/nodeclaim.yaml.j2": "{{ 1 / 0 }}\n", "evil.yaml": buffer("evil", 9)}
        commit = repository.publish("evil", files, to=fork)
        number = repository.open_pull_request("evil", head=f"{other}:evil", token=theirs)
        eventually(lambda: says("absent → 9"), within=60, what="the daemon reports on the pull request of a fork")
        assert not says("template-failed")
        eventually(lambda: "headroom/plan" in repository.statuses(commit), within=30, what="the commit has a status")
        assert repository.statuses(commit)["headroom/plan"]["status"] == "warning", "its template was not judged"
