"""What a remote's history does to what is in force: branches that go, force-pushes, tags, signatures, bad commits."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Stalled
from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from reconciler.source.revision import LocalRevision
from reconciler.source.selection import TreeLimits
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository

HOLD = timedelta(minutes=10)
WHATEVER_THE_SERVER = pytest.mark.parametrize("five_commits", [True], indirect=True, ids=["filtering"])
"""Nothing here depends on whether the remote can leave contents out of a clone."""


@pytest.fixture(scope="module", params=[True, False], ids=["filtering", "plain"])
def five_commits(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> GitRepository:
    repository = GitRepository(tmp_path_factory.mktemp("five_commits"), filters=request.param)
    for number in range(5):
        repository.push({"pool.yaml": f"pool {number}"})
    return repository


@pytest.fixture
def repository(five_commits: GitRepository, tmp_path: Path) -> GitRepository:
    return five_commits.copied_to(tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def poll(repository: GitRepository, tmp_path: Path, clock: ManualClock) -> Callable[[], SourceTree]:
    """Polls the repository's default branch, a minute after the poll before."""
    source = GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state", rewind_hold=HOLD))

    def poll() -> SourceTree:
        clock.advance(60)
        return source.read()

    return poll


def opened(repository: GitRepository, tmp_path: Path, revision: str | None = None) -> GitSource:
    return GitSource(
        repository.url, clock=ManualClock(), revision=revision, options=GitOptions(state=tmp_path / "state")
    )


def test_a_merge_is_no_rewind(repository: GitRepository, poll: Callable[[], SourceTree]) -> None:
    repository.git("branch", "side", "HEAD~3")
    poll()
    repository.git("checkout", "--quiet", "side")
    repository.commit({"side.yaml": "side"})
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-edit", "side")
    repository.push()
    tree = poll()
    assert "side.yaml" in tree.files
    assert not tree.rewound


def test_a_force_push_is_followed_and_marked_for_the_hold_time(
    repository: GitRepository, poll: Callable[[], SourceTree], clock: ManualClock
) -> None:
    poll()
    repository.git("reset", "--quiet", "--hard", "HEAD~2")
    repository.push({"pool.yaml": "rewritten"}, "--force")
    tree = poll()
    assert tree.files == {"pool.yaml": b"rewritten"}
    assert tree.rewound
    repository.push({"pool.yaml": "and on"})
    later = poll()
    assert (later.files, later.rewound) == ({"pool.yaml": b"and on"}, True)
    clock.advance(HOLD)
    assert not poll().rewound


def test_a_branch_that_is_set_back_is_rewound(repository: GitRepository, poll: Callable[[], SourceTree]) -> None:
    poll()
    repository.git("push", "--quiet", "--force", str(repository.remote), "HEAD~3:main")
    tree = poll()
    assert (tree.files, tree.rewound) == ({"pool.yaml": b"pool 1"}, True)


def test_an_unrelated_history_is_rewound(repository: GitRepository, poll: Callable[[], SourceTree]) -> None:
    poll()
    repository.git("checkout", "--quiet", "--orphan", "fresh")
    repository.commit({"pool.yaml": "fresh"})
    repository.git("push", "--quiet", "--force", str(repository.remote), "HEAD:main")
    assert poll().rewound


def test_commits_dated_before_the_last_one_are_held_to_be_safe(
    repository: GitRepository, poll: Callable[[], SourceTree]
) -> None:
    poll()
    repository.backdate_by(1_000)
    repository.push({"pool.yaml": "from a machine with a wrong clock"})
    tree = poll()
    assert tree.files == {"pool.yaml": b"from a machine with a wrong clock"}
    assert tree.rewound


@WHATEVER_THE_SERVER
def test_the_hold_outlives_a_restart(repository: GitRepository, tmp_path: Path) -> None:
    clock = ManualClock()
    GitSource(repository.url, clock=clock, options=GitOptions(state=tmp_path / "state", rewind_hold=HOLD)).read()
    repository.git("push", "--quiet", "--force", str(repository.remote), "HEAD~3:main")
    for _ in range(2):
        restarted = GitSource(
            repository.url, clock=clock, options=GitOptions(state=tmp_path / "state", rewind_hold=HOLD)
        )
        assert restarted.read().rewound
        clock.advance(60)


@WHATEVER_THE_SERVER
def test_a_branch_that_vanished_stays_in_force_until_it_is_back(repository: GitRepository, tmp_path: Path) -> None:
    clock = ManualClock()
    repository.git("push", "--quiet", str(repository.remote), "HEAD:production")
    source = GitSource(repository.url, clock=clock, revision="production", options=GitOptions(state=tmp_path / "state"))
    good = source.read()
    repository.git("push", "--quiet", str(repository.remote), ":production")
    clock.advance(60)
    gone = source.read()
    assert gone.files == good.files
    assert gone.stalled == ("GitOperationFailed", f"{repository.url} has no branch or tag 'production'")
    repository.git("push", "--quiet", str(repository.remote), "HEAD:production")
    clock.advance(60)
    back = source.read()
    assert (back.stalled, back.rewound) == (None, False)


@WHATEVER_THE_SERVER
def test_a_revision_that_never_was_names_the_default_branch(repository: GitRepository, tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="no branch or tag 'mian'") as caught:
        opened(repository, tmp_path, revision="mian").read()
    assert caught.value.hint == "its default branch is main; a commit needs its full name"


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    empty = GitRepository(tmp_path)
    with pytest.raises(Stalled, match="has no commit on its default branch"):
        opened(empty, tmp_path).read()


@WHATEVER_THE_SERVER
def test_tags_and_commits(repository: GitRepository, tmp_path: Path) -> None:
    commit = repository.git("rev-parse", "HEAD~2")
    repository.git("tag", "light", commit)
    repository.git("tag", "--annotate", "--message=First", "v1.0", commit)
    repository.git("push", "--quiet", "--tags", str(repository.remote))
    for revision, name in (("light", "light"), ("v1.0", "v1.0"), ("refs/tags/v1.0", "v1.0"), (commit, "HEAD")):
        tree = opened(repository, tmp_path, revision=revision).read()
        assert (tree.revision, tree.files) == (f"{name}@sha1:{commit}", {"pool.yaml": b"pool 2"})


@WHATEVER_THE_SERVER
def test_a_bad_commit_waits_and_a_newer_one_does_not(repository: GitRepository, tmp_path: Path) -> None:
    clock = ManualClock()
    source = GitSource(
        repository.url, clock=clock, limits=TreeLimits(files=2), options=GitOptions(state=tmp_path / "state")
    )
    source.read()
    repository.push({"a.yaml": "a", "b.yaml": "b"})
    for _ in range(12):
        clock.advance(60)
        bad = source.read()
        assert (bad.files, bad.stalled) == (
            {"pool.yaml": b"pool 4"},
            ("TreeTooLarge", "the repository has more than 2 manifests"),
        )
    retry_at = source._backoffs["commit"].not_before
    assert retry_at > clock.now()
    repository.git("rm", "--quiet", "a.yaml")
    repository.push()
    tree = source.read()
    assert clock.now() < retry_at
    assert (sorted(tree.files), tree.stalled, source._backoffs) == (["b.yaml", "pool.yaml"], None, {})


@WHATEVER_THE_SERVER
def test_submodules_are_not_followed(repository: GitRepository, tmp_path: Path) -> None:
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository.remote), "vendored"
    )
    repository.push()
    tree = opened(repository, tmp_path).read()
    assert list(tree.files) == ["pool.yaml"]
    assert tree.skipped == (("vendored", "it is a submodule; submodules are not followed"),)


def signing_key(folder: Path, name: str) -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return path


class Signed:
    """A remote whose commits are signed, by whoever is named."""

    def __init__(self, repository: GitRepository, folder: Path) -> None:
        self._repository = repository
        self._keys = {name: signing_key(folder, name) for name in ("anna", "eve")}
        self.clock = ManualClock()
        self.allowed = folder / "signers"
        self.allowed.write_text(f"anna@example.com {self._keys['anna'].with_suffix('.pub').read_text()}")
        self._state = folder / "state"

    def sign(self, name: str, *command: str) -> str:
        """Runs `git …` with the key of one person, "" for none; the commit that is then checked out."""
        flags = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={self._keys.get(name)}", "-c", "commit.gpgSign=true"]
        self._repository.git(*(flags if name else []), *command)
        return self._repository.git("rev-parse", "HEAD")

    def commit(self, content: str, name: str) -> str:
        self._repository.write({"pool.yaml": content})
        self._repository.git("add", "--all")
        return self.sign(name, "commit", "--quiet", f"--message={content}")

    def push(self) -> None:
        self._repository.git("push", "--quiet", "--force", str(self._repository.remote), "HEAD:main")
        self.clock.advance(60)

    def source(self) -> GitSource:
        return GitSource(
            self._repository.url, clock=self.clock, options=GitOptions(state=self._state, allowed_signers=self.allowed)
        )


@pytest.fixture
def signed(repository: GitRepository, tmp_path: Path) -> Signed:
    signed = Signed(repository, tmp_path)
    signed.commit("good", "anna")
    signed.push()
    return signed


def refused(tree: SourceTree, commit: str) -> bool:
    """Whether the tree is the last good one, and this commit is to blame."""
    assert tree.files == {"pool.yaml": b"good"}
    assert tree.stalled is not None
    assert tree.stalled[0] == "SignatureVerificationFailed"
    return commit[:12] in tree.stalled[1]


@pytest.mark.parametrize("name", ["", "eve"])
def test_a_commit_that_no_allowed_signer_signed_is_not_taken(name: str, signed: Signed) -> None:
    source = signed.source()
    assert source.read().files == {"pool.yaml": b"good"}
    commit = signed.commit("bad", name)
    signed.push()
    assert refused(source.read(), commit)


def test_a_signature_does_not_vouch_for_the_commits_below_it(signed: Signed) -> None:
    source = signed.source()
    source.read()
    commit = signed.commit("unsigned", "")
    signed.commit("signed on top of it", "anna")
    signed.push()
    assert refused(source.read(), commit)
    assert refused(signed.source().read(), commit)  # also after a restart


def test_once_the_unsigned_commit_is_out_of_the_branch_it_goes_on(signed: Signed, repository: GitRepository) -> None:
    source = signed.source()
    source.read()
    signed.commit("unsigned", "")
    signed.push()
    source.read()
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    for content in ("one", "two", "three"):
        signed.commit(content, "anna")
    signed.push()
    tree = source.read()
    assert (tree.files, tree.stalled, tree.rewound) == ({"pool.yaml": b"three"}, None, False)


def test_a_side_branch_that_is_older_than_the_last_good_commit(signed: Signed, repository: GitRepository) -> None:
    source = signed.source()
    source.read()
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    repository.backdate_by(1_000)
    repository.write({"side.yaml": "unsigned"})
    commit = repository.commit()
    repository.git("checkout", "--quiet", "main")
    signed.sign("anna", "merge", "--quiet", "--no-edit", "side")
    signed.push()
    assert refused(source.read(), commit)


def test_commits_that_a_force_push_puts_under_a_signed_one(signed: Signed, repository: GitRepository) -> None:
    source = signed.source()
    source.read()
    repository.git("reset", "--quiet", "--hard", "HEAD~3")
    commit = signed.commit("unsigned", "")
    signed.commit("signed on top of it", "anna")
    signed.push()
    assert refused(source.read(), commit)


def test_a_branch_that_is_set_back_to_a_signed_commit(signed: Signed, repository: GitRepository) -> None:
    source = signed.source()
    source.read()
    signed.commit("next", "anna")
    signed.push()
    assert source.read().files == {"pool.yaml": b"next"}
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    signed.push()
    tree = source.read()
    assert (tree.files, tree.stalled, tree.rewound) == ({"pool.yaml": b"good"}, None, True)


def test_what_was_committed_before_signing_began_is_not_asked_about(signed: Signed) -> None:
    """The repository's first commits are unsigned, and stay so."""
    assert signed.source().read().stalled is None


@WHATEVER_THE_SERVER
def test_a_repository_on_this_machine_is_held_to_the_same(signed: Signed, repository: GitRepository) -> None:
    source = LocalRevision(
        repository.work, "main", clock=signed.clock, options=GitOptions(allowed_signers=signed.allowed)
    )
    source.read()
    commit = signed.commit("unsigned", "")
    signed.commit("signed on top of it", "anna")
    assert refused(source.read(), commit)


ALLOWED = "Remove the old shops\n\nHeadroom-Allow-Removals: true\n"


@WHATEVER_THE_SERVER
def test_a_commit_since_the_last_one_may_allow_removals(
    repository: GitRepository, poll: Callable[[], SourceTree]
) -> None:
    assert not poll().removals_allowed
    repository.push({"pool.yaml": "without"})
    assert not poll().removals_allowed
    repository.git("commit", "--allow-empty", "--quiet", "--message", ALLOWED)
    repository.push({"pool.yaml": "a merge would stand here"})
    assert poll().removals_allowed
    assert poll().removals_allowed, "of this revision"
    repository.push({"pool.yaml": "the next"})
    assert not poll().removals_allowed


def test_after_a_force_push_only_the_newest_commit_counts(
    repository: GitRepository, poll: Callable[[], SourceTree]
) -> None:
    repository.git("commit", "--allow-empty", "--quiet", "--message", ALLOWED)
    repository.push({"pool.yaml": "allowed before"})
    poll()
    repository.git("reset", "--quiet", "--hard", "HEAD~2")
    repository.push({"pool.yaml": "rewritten"}, "--force")
    assert not poll().removals_allowed


@WHATEVER_THE_SERVER
def test_a_local_revision_may_allow_removals_too(repository: GitRepository) -> None:
    source = LocalRevision(repository.work, "main", clock=ManualClock())
    assert not source.read().removals_allowed
    repository.git("commit", "--allow-empty", "--quiet", "--message", ALLOWED)
    repository.push({"pool.yaml": "more"})
    assert source.read().removals_allowed
