"""Repositories on this machine: revisions read from objects, the state folder's damage, leaks, ssh, and the choice of source."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import threading
from datetime import timedelta, timezone
from pathlib import Path
from unittest.mock import patch

import pytest

from reconciler.model.errors import Failure, Invalid, Stalled
from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from reconciler.source.opening import WorkingTree, open_source, tree_at
from reconciler.source.revision import LocalRevision
from reconciler.source.selection import Scope
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository

SERVED_BY_SSH = """#!/bin/sh
# takes the options, then the host, then runs what the far side would
printf '%s\\n' "$@" > "$SSH_ARGUMENTS"
while [ "$1" = -o ] || [ "$1" = -i ] || [ "$1" = -p ]; do shift 2; done
shift
exec sh -c "$*"
"""


@pytest.fixture(scope="module")
def one_commit(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    repository = GitRepository(tmp_path_factory.mktemp("one_commit"))
    repository.push({"pool.yaml": "one", "clusters/a/own.yaml": "own"})
    return repository


@pytest.fixture
def repository(one_commit: GitRepository, tmp_path: Path) -> GitRepository:
    return one_commit.copied_to(tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_revision_of_a_working_tree_does_not_see_its_files(repository: GitRepository, clock: ManualClock) -> None:
    commit = repository.git("rev-parse", "HEAD")
    repository.write({"pool.yaml": "not committed"})
    source = open_source(str(repository.work), clock=clock, revision="main")
    tree = source.read()
    assert tree.revision == f"main@sha1:{commit}"
    assert tree.files == {"clusters/a/own.yaml": b"own", "pool.yaml": b"one"}
    assert source.read().files is tree.files


@pytest.mark.parametrize("year", [1969, 10_000, 300_000_000])
def test_a_commit_of_a_year_that_no_calendar_has_is_read(
    repository: GitRepository, clock: ManualClock, year: int
) -> None:
    seconds = max(0, year - 1970) * 31_556_952
    repository.git(
        "commit", "--quiet", "--allow-empty", "--message=x", environment={"GIT_COMMITTER_DATE": f"@{seconds} +0000"}
    )
    repository.git("push", "--quiet", repository.url, "main")
    for place, revision in ((str(repository.work), "main"), (repository.url, None)):
        committed = tree_at(place, revision, clock=clock).committed
        assert committed is not None
        assert committed.astimezone(timezone(timedelta(hours=14))).year == min(max(year, 1970), 9999)


def test_a_revision_is_followed_when_it_moves_and_kept_when_it_goes(
    repository: GitRepository, clock: ManualClock
) -> None:
    repository.git("branch", "live")
    source = LocalRevision(repository.work, "live", clock=clock)
    source.read()
    repository.commit({"pool.yaml": "two"})
    repository.git("branch", "--force", "live", "main")
    moved = source.read()
    assert (moved.files["pool.yaml"], moved.rewound) == (b"two", False)
    repository.git("branch", "--force", "live", "main~1")
    assert source.read().rewound
    repository.git("branch", "-D", "live")
    gone = source.read()
    assert gone.files["pool.yaml"] == b"one"
    assert gone.stalled == ("GitOperationFailed", f"{repository.work} has no revision 'live'")
    clock.advance(timedelta(minutes=10))
    assert not source.read().rewound


def test_a_folder_inside_a_repository_is_its_own_root(repository: GitRepository, clock: ManualClock) -> None:
    tree = tree_at(str(repository.work / "clusters"), "HEAD~0", Scope("a"), clock=clock)
    assert tree.files == {"a/own.yaml": b"own"}


def test_a_bare_repository_is_read_at_its_head(repository: GitRepository, clock: ManualClock) -> None:
    assert open_source(str(repository.remote), clock=clock).read().files["pool.yaml"] == b"one"


def test_a_working_tree_is_read_as_it_stands_unless_a_revision_is_named(
    repository: GitRepository, clock: ManualClock
) -> None:
    repository.write({"pool.yaml": "not committed"})
    assert tree_at(str(repository.work), None, clock=clock).files["pool.yaml"] == b"not committed"
    assert tree_at(str(repository.work), "HEAD", clock=clock).files["pool.yaml"] == b"one"


def test_two_revisions_of_a_url(repository: GitRepository, clock: ManualClock) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.push({"pool.yaml": "two"})
    trees = [tree_at(repository.url, revision, clock=clock) for revision in (base, "main", None)]
    assert [tree.files["pool.yaml"] for tree in trees] == [b"one", b"two", b"two"]


def test_a_tree_for_comparison_is_never_an_old_one(
    repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    options = GitOptions(state=str(tmp_path / "state"))
    tree_at(repository.url, None, clock=clock, options=options)
    repository.remote.rename(tmp_path / "gone.git")
    with pytest.raises(Stalled):
        tree_at(repository.url, None, clock=clock, options=options)


@pytest.mark.parametrize(
    ("repository_name", "revision", "failure", "message"),
    [
        ("no/such/folder", None, Stalled, "repository 'no/such/folder' is not a folder"),
        ("{folder}", "main", Invalid, "is in no Git repository, so it has no revisions"),
        ("ext::sh -c true", None, Invalid, "ext is not a host"),
    ],
)
def test_what_cannot_be_opened(
    tmp_path_factory: pytest.TempPathFactory,
    clock: ManualClock,
    repository_name: str,
    revision: str | None,
    failure: type[Failure],
    message: str,
) -> None:
    folder = tmp_path_factory.mktemp("plain")
    with pytest.raises(failure, match=message):
        open_source(repository_name.format(folder=folder), clock=clock, revision=revision)


def test_unsigned_files_are_not_taken_where_signatures_are_required(
    repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    signers = tmp_path / "signers"
    signers.write_text("")
    options = GitOptions(allowed_signers=str(signers))
    with pytest.raises(Invalid, match="files have no signatures"):
        open_source(str(repository.work), clock=clock, options=options)
    with pytest.raises(Stalled, match="is not signed by an allowed signer"):
        open_source(str(repository.work), clock=clock, revision="main", options=options).read()


def test_a_plain_folder_needs_no_git(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "a.yaml").write_text("a")
    assert isinstance(open_source(str(tmp_path), clock=clock), WorkingTree)


def damage(state: Path) -> None:
    for file in (*state.glob("*/repository.git/objects/pack/*"), *state.glob("*/repository.git/config")):
        file.chmod(0o600)
        file.write_bytes(b"damaged")


def test_a_copy_that_is_damaged_between_polls(repository: GitRepository, tmp_path: Path, clock: ManualClock) -> None:
    state = tmp_path / "state"
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=state))
    before = source.read().files
    damage(state)
    repository.push({"pool.yaml": "two"})
    tree = source.read()
    assert (tree.files, tree.stalled, tree.rewound) == ({**before, "pool.yaml": b"two"}, None, False)


def test_a_default_branch_that_is_renamed_is_named_anew_at_once(repository: GitRepository, clock: ManualClock) -> None:
    """Until the next commit the daemon took no pull request into it for one of its own."""
    source = GitSource(repository.url, clock=clock)
    before = source.read()
    repository.git("branch", "--move", "main", "trunk", at=repository.remote)
    tree = source.read()
    assert tree.revision == str(before.revision).replace("main@", "trunk@")
    assert (tree.files, tree.stalled, tree.rewound) == (before.files, None, False)
    source.close()


@pytest.mark.parametrize("kept", [12, 1_000])
def test_a_pack_that_was_cut_off_before_a_restart(
    kept: int, repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    """A git that reads it says so for each of many objects: nobody may wait for an answer behind that."""
    state = tmp_path / "state"
    repository.push({f"clusters/a/{number}.yaml": f"a: {number}" for number in range(500)})
    before = GitSource(repository.url, clock=clock, options=GitOptions(state=state)).read()
    for pack in state.glob("*/repository.git/objects/pack/*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:kept])
    restarted = GitSource(repository.url, clock=clock, options=GitOptions(state=state, timeout=timedelta(seconds=30)))
    tree = restarted.read()
    assert (tree.files, tree.stalled, tree.rewound) == (before.files, None, False)


def test_a_state_folder_that_another_process_does_not_let_go_of(
    repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state"))
    source.read()
    (lock,) = tmp_path.glob("state/*/lock")
    with lock.open("w") as file, patch("reconciler.source.git.SILENCE", 0.3):
        fcntl.flock(file, fcntl.LOCK_EX)
        stalled = source.read().stalled
    assert stalled is not None
    assert "is in use by another process" in stalled[1]
    assert source.read().stalled is None


def test_locks_of_a_git_that_was_killed_are_cleared_away(
    repository: GitRepository, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state"))
    source.read()
    (copy,) = tmp_path.glob("state/*/repository.git")
    for lock in ("shallow.lock", "packed-refs.lock", "config.lock", "refs/headroom/candidate.lock"):
        (copy / lock).touch()
    (copy / "gc.pid").write_text(f"{os.getpid()} {socket.gethostname()}")  # the number is another process's by now
    monkeypatch.setattr("reconciler.source.remote._MOST_PACKS", 1)
    repository.push({"pool.yaml": "two"})
    tree = source.read()
    assert (tree.files["pool.yaml"], tree.stalled) == (b"two", None)
    assert len(list(copy.glob("objects/pack/*.pack"))) == 1


def test_a_copy_that_cannot_be_tidied_is_read_all_the_same(
    repository: GitRepository, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.source.remote._MOST_PACKS", 0)
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state"))
    source.read()
    for copy in tmp_path.glob("state/*/repository.git"):
        repository.git("config", "gc.reflogExpire", "no date", at=copy)
    repository.push({"pool.yaml": "two"})
    clock.advance(60)
    tree = source.read()
    assert (tree.files["pool.yaml"], tree.stalled) == (b"two", None)


def test_a_state_folder_that_cannot_be_used(repository: GitRepository, tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(Stalled, match="cannot be used") as caught:
        GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state")).read()
    assert caught.value.reason == "StorageOperationFailed"


def test_without_a_state_folder_nothing_is_left_behind(
    repository: GitRepository, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    tree_at(repository.url, "main", clock=clock)
    assert list(temporary.iterdir()) == []


def test_open_files_processes_and_packs_stay_flat_over_60_polls(
    repository: GitRepository, tmp_path: Path, clock: ManualClock
) -> None:
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state"))

    def figures() -> tuple[int, int, int]:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
        return len(list(Path("/proc/self/fd").iterdir())), len(children), threading.active_count()

    source.read()
    before = figures()
    for number in range(60):
        if number % 3 == 0:
            repository.push({"pool.yaml": f"pool {number}"})
        clock.advance(60)
        tree = source.read()
        assert (tree.files["pool.yaml"], tree.stalled) == (f"pool {number - number % 3}".encode(), None)
    assert figures() == before
    assert len(list(tmp_path.glob("state/*/repository.git/objects/pack/*.pack"))) <= 45


def test_ssh_is_told_the_key_and_the_known_hosts(
    repository: GitRepository, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, arguments = tmp_path / "ssh", tmp_path / "arguments"
    program.write_text(SERVED_BY_SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    monkeypatch.setenv("SSH_ARGUMENTS", str(arguments))
    options = GitOptions(ssh_key="/keys/id", known_hosts="/keys/known_hosts")
    for url in (f"ssh://git@forge.example.com{repository.remote}", f"git@forge.example.com:{repository.remote}"):
        tree = tree_at(url, None, clock=clock, options=options)
        assert tree.files["pool.yaml"] == b"one"
        given = arguments.read_text().split("\n")
        assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=/keys/known_hosts"} <= set(given)
        assert given[given.index("-i") + 1] == "/keys/id"
        assert "git@forge.example.com" in given


def test_commits_signed_by_openpgp_keys(repository: GitRepository, tmp_path: Path, clock: ManualClock) -> None:
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    gpg = {"GNUPGHOME": str(home)}

    def run(*arguments: str) -> str:
        return repository.git("-c", f"alias.gpg=!gpg --batch --quiet {' '.join(arguments)}", "gpg", environment=gpg)

    try:
        run("--passphrase ''", "--quick-generate-key", "anna@example.com", "ed25519", "sign", "never")
        keys = tmp_path / "keys.asc"
        keys.write_text(run("--armor", "--export", "anna@example.com"))
        repository.git(
            "-c", "user.signingKey=anna@example.com", "commit", "--quiet", "--allow-empty", "-S", "-m", "signed",
            environment=gpg,
        )  # fmt: skip
        signed = repository.push({"pool.yaml": "unsigned"})
        options = GitOptions(allowed_signers=str(keys))
        assert tree_at(repository.url, f"{signed}", clock=clock).files["pool.yaml"] == b"unsigned"
        with pytest.raises(Stalled, match="is not signed by an allowed signer"):
            tree_at(repository.url, signed, clock=clock, options=options)
        parent = repository.git("rev-parse", "HEAD~1")
        assert tree_at(repository.url, parent, clock=clock, options=options).files["pool.yaml"] == b"one"
    finally:
        repository.git("-c", "alias.end=!gpgconf --kill all", "end", environment=gpg)
        shutil.rmtree(home, ignore_errors=True)
