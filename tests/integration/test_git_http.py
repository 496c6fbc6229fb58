"""Polling a smart HTTP server: little is asked for when nothing changed, and nothing is lost when it misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, stalled
from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from reconciler.source.remote import Remote
from reconciler.source.selection import Scope
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository
from tests.integration.git_server import GitHttpServer
from tests.unit.source.test_commands import processes_with

ONE_POLL = ["info/refs?service=git-upload-pack", "git-upload-pack"]
"""What `ls-remote` asks for."""
TOKEN = "glpat-0123456789abcdefghij"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path)
    repository.push({"pool.yaml": "one", "large.bin": "x"})
    return repository


@pytest.fixture
def server(repository: GitRepository) -> Iterator[GitHttpServer]:
    with GitHttpServer(repository.served) as server:
        yield server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Daemon:
    """A source with its state folder, polled once a minute."""

    def __init__(
        self, url: str, tmp_path: Path, clock: ManualClock, scope: Scope | None = None, **options: Any
    ) -> None:
        self.state = tmp_path / "state"
        self._clock = clock
        self.source = GitSource(url, clock=clock, scope=scope, options=GitOptions(state=self.state, **options))

    def poll(self) -> SourceTree:
        self._clock.advance(60)
        return self.source.read()

    @property
    def copy(self) -> Path:
        (folder,) = self.state.glob("*/repository.git")
        return folder


def test_nothing_is_fetched_when_nothing_changed(server: GitHttpServer, tmp_path: Path, clock: ManualClock) -> None:
    daemon = Daemon(server.url, tmp_path, clock)
    first = daemon.poll()
    server.heard()
    for _ in range(3):
        assert daemon.poll() == first
        assert server.heard() == ONE_POLL


def test_of_a_large_repository_only_what_is_read_comes_over(
    server: GitHttpServer, repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    repository.commit_each(
        {"clusters/a/pool.yaml": f"pool {number}", f"apps/{number}.yaml": f"app {number}"} for number in range(200)
    )
    repository.push()
    daemon = Daemon(server.url, tmp_path, clock, scope=Scope("clusters/a"))
    assert daemon.poll().files == {"clusters/a/pool.yaml": b"pool 199"}
    # one commit; the trees of the root, apps, clusters and clusters/a; one manifest
    kinds = repository.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)", at=daemon.copy).split()
    assert sorted(kinds) == ["blob", "commit", "tree", "tree", "tree", "tree"]


def test_a_server_that_cannot_filter_sends_one_commit_whole(tmp_path: Path, clock: ManualClock) -> None:
    repository = GitRepository(tmp_path, filters=False)
    repository.push({"pool.yaml": "first"})
    repository.commit_each({"pool.yaml": f"pool {number}", "other.txt": f"{number}"} for number in range(20))
    repository.push()
    with GitHttpServer(repository.served) as server:
        daemon = Daemon(server.url, tmp_path, clock)
        assert daemon.poll().files == {"pool.yaml": b"pool 19"}
        assert repository.git("rev-list", "--count", "--all", at=daemon.copy) == "1"
        repository.push({"pool.yaml": "next"})
        assert daemon.poll().files == {"pool.yaml": b"next"}


def test_a_server_that_filters_and_yet_gives_no_single_objects(
    server: GitHttpServer, repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    server.modern = False
    daemon = Daemon(server.url, tmp_path, clock)
    assert daemon.poll().files == {"pool.yaml": b"one"}
    for number in range(3):
        repository.push({"pool.yaml": f"next {number}"})
        tree = daemon.poll()
        assert (tree.files, tree.stalled, tree.rewound) == ({"pool.yaml": f"next {number}".encode()}, None, False)
    earlier = repository.git("rev-parse", "HEAD~1")
    with pytest.raises(Stalled, match="unadvertised object") as caught:
        GitSource(server.url, clock=clock, revision=earlier, options=GitOptions(state=tmp_path / "other")).read()
    assert caught.value.hint == "name a branch or a tag: this server gives no other commits"


def test_a_folder_that_comes_back_as_it_was_between_two_polls(
    server: GitHttpServer, repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    daemon = Daemon(server.url, tmp_path, clock)
    daemon.poll()
    repository.commit({"pools/a.yaml": "seen by nobody yet"})
    repository.commit({"pools/a.yaml": "two", "pools/b.yaml": "b"})
    repository.push({"other.yaml": "other"})
    daemon.poll()
    repository.git("checkout", "--quiet", "HEAD~2", "--", "pools")
    repository.git("rm", "--quiet", "--force", "pools/b.yaml")
    repository.push()
    tree = daemon.poll()
    assert tree.files["pools/a.yaml"] == b"seen by nobody yet"
    assert tree.stalled is None


def test_rules_that_were_filtered_out_are_brought_over_first(
    server: GitHttpServer, repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    repository.write({"c/.sourceignore": "b.yaml\n", "c/b.yaml": "b", "c/own.yaml": "own", ".sourceignore": "x/\n"})
    repository.write({"c/x/y.yaml": "y"})
    (repository.work / "c/out.yaml").symlink_to("own.yaml")
    repository.push()
    tree = Daemon(server.url, tmp_path, clock, scope=Scope("c")).poll()
    assert tree.files == {"c/own.yaml": b"own"}
    assert tree.skipped == (("c/out.yaml", "it is a link; links are not followed"),)


@contextmanager
def limit_of_silence(seconds: float) -> Iterator[None]:
    """For one poll alone: on a slow machine a git that is well may take as long."""
    with patch("reconciler.source.child.SILENCE", seconds):
        yield


@pytest.mark.parametrize(
    ("fault", "reason", "message"),
    [
        ("500", "GitOperationFailed", "The requested URL returned error: 500"),
        ("403", "AuthenticationFailed", "The requested URL returned error: 403"),
        ("401", "AuthenticationFailed", "could not read Username"),
        ("hang", "GitOperationFailed", "no answer within 1s"),
        ("truncate", "GitOperationFailed", "cannot fetch from"),
        ("down", "GitOperationFailed", "Failed to connect"),
    ],
)
def test_the_last_good_tree_stays_through_every_failure_and_the_next_poll_recovers(
    server: GitHttpServer,
    repository: GitRepository,
    tmp_path: Path,
    clock: ManualClock,
    fault: str,
    reason: str,
    message: str,
) -> None:
    daemon = Daemon(server.url, tmp_path, clock)
    good = daemon.poll()
    repository.push({"pool.yaml": "two"})
    if fault == "down":
        server.stop()
    server.fault = fault
    with limit_of_silence(1.0 if fault == "hang" else 60.0):
        bad = daemon.poll()
    assert bad.files == good.files
    assert bad.stalled is not None
    assert bad.stalled[0] == reason
    assert message in bad.stalled[1]
    server.fault = ""
    server.release()
    if fault == "down":
        server.start()
    after = daemon.poll()
    assert (after.files, after.stalled) == ({"pool.yaml": b"two"}, None)


def test_the_remote_is_left_alone_while_it_backs_off_unless_a_webhook_calls(
    server: GitHttpServer, tmp_path: Path, clock: ManualClock
) -> None:
    daemon = Daemon(server.url, tmp_path, clock)
    daemon.poll()
    server.fault = "500"
    for _ in range(10):
        daemon.poll()
    server.heard()
    stalled = daemon.source.read()
    assert server.heard() == []
    assert stalled.stalled is not None
    assert timedelta(0) < daemon.source._backoffs["remote"].not_before - clock.now() <= timedelta(minutes=15)
    server.fault = ""
    daemon.source.hasten()
    assert daemon.source.read().stalled is None
    assert daemon.source._backoffs == {}


def test_a_remote_that_was_never_read_is_an_error(server: GitHttpServer, tmp_path: Path, clock: ManualClock) -> None:
    server.fault = "500"
    with pytest.raises(Stalled, match="500") as caught:
        Daemon(server.url, tmp_path, clock).poll()
    assert caught.value.reason == "GitOperationFailed"
    assert caught.value.hint


def test_a_restart_while_the_remote_is_down_loses_nothing(
    server: GitHttpServer, tmp_path: Path, clock: ManualClock
) -> None:
    good = Daemon(server.url, tmp_path, clock).poll()
    server.stop()
    tree = Daemon(server.url, tmp_path, clock).poll()
    assert (tree.files, tree.revision) == (good.files, good.revision)
    assert tree.stalled is not None
    server.start()


def test_a_password_in_the_url_is_used_and_kept_nowhere(
    server: GitHttpServer, tmp_path: Path, clock: ManualClock
) -> None:
    server.token = TOKEN
    daemon = Daemon(server.url.replace("http://", f"http://anna:{TOKEN}@"), tmp_path, clock)
    assert daemon.poll().files == {"pool.yaml": b"one"}
    written = [path.read_bytes() for path in daemon.state.rglob("*") if path.is_file()]
    assert written
    assert not any(TOKEN.encode() in content for content in written)


def test_a_token_is_in_no_process_list(server: GitHttpServer, tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    server.token = TOKEN
    server.fault = "hang"
    daemon = Daemon(server.url, tmp_path, clock, token_file=str(file))
    failures: list[Stalled] = []

    def poll() -> None:
        try:
            daemon.poll()
        except Stalled as failure:
            failures.append(failure)

    thread = threading.Thread(target=poll)
    thread.start()
    assert server.arrived.wait(30)
    assert processes_with(server.url)
    assert processes_with(TOKEN) == []
    server.release()
    thread.join()
    assert len(failures) == 1


def test_a_server_without_history_by_time_is_asked_for_its_last_commits(
    repository: GitRepository, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure DevOps answers so. Each commit on top counted as a force-push."""
    fetch = Remote._fetch

    def refusing(remote: Remote, folder: Path, *words: str, **more: Any) -> None:
        if any("shallow-since" in word for word in words):
            refused = CommandFailedError("fetch", 128, "fatal: Server does not support --shallow-since")
            raise stalled(refused, "host", "fetch from") from refused
        fetch(remote, folder, *words, **more)

    monkeypatch.setattr(Remote, "_fetch", refusing)
    source = GitSource(repository.url, clock=clock)
    source.read()
    repository.push({"pool.yaml": "on top"})
    tree = source.read()
    assert (tree.files["pool.yaml"], tree.rewound) == (b"on top", False)
