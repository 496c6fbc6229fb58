"""A remote repository: its references, and fetching no more of it than is needed.

The copy is bare and shallow. Where the remote supports it (`--filter=blob:none`), it has no file contents, and those that are needed
come in one further request. Other remotes send the whole tree of one commit.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.errors import Stalled
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, Commands, allows_removals, stalled
from reconciler.source.credentials import Address, GitOptions, authorize
from reconciler.source.objects import Loaded, read_commit
from reconciler.source.selection import Scope, TreeLimits

CANDIDATE = "refs/headroom/candidate"
GOOD = "refs/headroom/good"
PROVEN = "refs/headroom/proven"
"""The last commit of which a pass has ended."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_PACKS = 40
_FILTER = "--filter=blob:none"
_DEEPEST = 1000
"""Commits fetched to look for the last good one, from a server that cannot limit history by time."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a revision points to. name: shown to users. ref: what to fetch, a reference or the commit itself."""

    name: str
    ref: str
    commit: str


class Remote:
    """One remote and the folder of its copy. Every failure is a `Stalled`."""

    def __init__(self, address: Address, folder: Path, options: GitOptions) -> None:
        self._address = address
        self.folder = folder
        self._options = options
        self._timeout = options.seconds
        self._filter = _FILTER
        self._ref = ""

    def local(self) -> Commands:
        """Git on the copy, without access to the network."""
        return Commands(self.folder, timeout=self._timeout)

    def lazy(self) -> Commands:
        """Git on the copy. Contents that a filtered fetch left out are fetched when a command needs them."""
        return self._network(self.folder)

    def head(self, revision: str | None) -> Head:
        """Where `revision` points now. It is a branch, a tag or a full commit name, tried in this order; None is the default branch."""
        if revision and _COMMIT.fullmatch(revision):
            return Head("HEAD", revision, revision)
        commits, default = self._references(revision or "")
        if not revision:
            if "HEAD" not in commits:
                raise Stalled(
                    f"{self._address.shown} has no commit on its default branch",
                    reason=OPERATION_FAILED,
                    hint="push a first commit, or name a branch with --revision",
                )
            return Head(default.removeprefix("refs/heads/"), default, commits["HEAD"])
        head = _head_in(commits, revision)
        if head is None:
            raise Stalled(
                f"{self._address.shown} has no branch or tag {revision!r}",
                reason=OPERATION_FAILED,
                hint=f"its default branch is {default.removeprefix('refs/heads/')}; a commit needs its full name",
            )
        return head

    def branch(self, name: str) -> Head | None:
        """A branch; None if there is none of this name."""
        ref = f"refs/heads/{name}"
        return _head_in(self._references(ref)[0], ref)

    def _references(self, revision: str) -> tuple[dict[str, str], str]:
        """Object names by reference, for HEAD and everything the revision may mean; and the branch that HEAD points to."""
        patterns = [pattern for ref in _spellings(revision) for pattern in (ref, f"{ref}^{{}}")]
        try:
            output = self._network().run("ls-remote", "--symref", "--", self._address.url, "HEAD", *patterns)
        except CommandFailedError as error:
            raise stalled(error, self._address.shown, "read") from error
        commits: dict[str, str] = {}
        default = "HEAD"
        for line in output.decode("utf-8", "replace").splitlines():
            target, _, ref = line.partition("\t")
            if target.startswith("ref: ") and ref == "HEAD":
                default = target.removeprefix("ref: ")
            elif _COMMIT.fullmatch(target):
                commits[ref] = target
        return commits, default

    def fetch(self, head: Head) -> str:
        """Fetches what the head's reference points to now; returns the commit's name."""
        self.prepare(self.folder)
        self._ref = head.ref
        self._fetch(self.folder, "--depth=1", self._filter, "origin", f"+{head.ref}:{CANDIDATE}")
        return self.local().line("rev-parse", "--verify", f"{CANDIDATE}^{{commit}}")

    def has(self, commit: str) -> bool:
        """Whether the copy has it."""
        return self.local().succeeds("cat-file", "-e", f"{commit}^{{commit}}")

    def fetch_histories(self, heads: Iterable[Head]) -> None:
        """Fetches several heads with all of their history, but no file contents where the remote can leave them out."""
        self.prepare(self.folder)
        refs = [f"+{head.ref}:refs/headroom/side-{number}" for number, head in enumerate(heads)]
        self._fetch(self.folder, self._filter, "origin", *refs)

    def fetch_objects(self, names: Iterable[str]) -> None:
        """Fetches single objects that a filtered fetch left out, in one request.

        A server may filter and still refuse this: when it speaks only the first version of git's protocol. That is so over an ssh
        that does not pass GIT_PROTOCOL on. From then on commits are fetched whole.
        """
        feed = "".join(f"{name}\n" for name in sorted(names)).encode()
        negotiation = ("fetch.negotiationAlgorithm", "noop")
        try:
            self._fetch(self.folder, _FILTER, "--stdin", "origin", feed=feed, config=(negotiation,))
        except Stalled as failure:
            if "unadvertised object" not in _told(failure):
                raise
            self._filter = "--no-filter"
            self._fetch(self.folder, "--refetch", "--depth=1", self._filter, "origin", self._ref)

    def absent(self, commit: str) -> set[str]:
        """The objects of a commit's tree that the copy does not have."""
        output = self.local().run("rev-list", "--objects", "--missing=print", f"{commit}^{{tree}}")
        return {line[1:].decode() for line in output.splitlines() if line.startswith(b"?")}

    def read(self, commit: str, scope: Scope, limits: TreeLimits) -> Loaded:
        """As `read_commit`. Contents that a filtered fetch left out are fetched."""
        absent = self.absent(commit)
        return read_commit(self.local(), commit, scope, limits, absent=absent, fetch=self.fetch_objects)

    def commits(self, commit: str) -> Path:
        """A repository with every ancestor of a commit but no trees, to verify the signature of each.

        It is kept between polls. The last good commit stays in it even after a force-push, so that new commits can be recognized.
        """
        folder = self._commits_folder
        try:
            self.prepare(folder)
            self._fetch(folder, "--filter=tree:0", "origin", f"+{self._ref}:{CANDIDATE}")
            Commands(folder, timeout=self._timeout).run("cat-file", "-e", f"{commit}^{{commit}}")
        except (CommandFailedError, Stalled) as error:
            failure = error if isinstance(error, Stalled) else stalled(error, self._address.shown, "fetch commits from")
            git = Commands(folder, timeout=self._timeout)
            if failure.reason == OPERATION_FAILED and not git.succeeds("rev-list", "--all", "--count"):
                shutil.rmtree(folder, ignore_errors=True)  # the next attempt fetches all of them
            raise failure from error
        return folder

    def keep_commits(self, commit: str) -> None:
        """Marks a commit as good in the repository of `commits`, if there is one."""
        if self._commits_folder.is_dir():
            Commands(self._commits_folder, timeout=self._timeout).run("update-ref", GOOD, commit)

    @property
    def _commits_folder(self) -> Path:
        return self.folder.with_name("commits.git")

    def descends(self, commit: str, *, earlier: str, earlier_time: int) -> tuple[bool, bool]:
        """Whether a commit descends from an earlier one, which was committed at `earlier_time` (seconds since 1970). If so: whether one
        of the commits since then allows removals.

        Fetches commits without trees back to that time, into a separate repository. In the copy, git would assume that a commit's trees
        exist too, and leave them out of later fetches.
        """
        history = self.folder.with_name("history.git")
        shutil.rmtree(history, ignore_errors=True)
        try:
            self.prepare(history)
            if not self._fetch_history(history, earlier_time):
                return False, False
            commands = Commands(history, timeout=self._timeout)
            commands.run("merge-base", "--is-ancestor", earlier, commit)
            return True, allows_removals(commands, commit, since=earlier)
        except CommandFailedError:
            return False, False  # status 1 means no; with any other the earlier commit is unknown, which counts as no
        finally:
            shutil.rmtree(history, ignore_errors=True)

    def _fetch_history(self, folder: Path, since: int) -> bool:
        """Fetches the head's commits since a time; False if all of its history is older."""
        try:
            self._fetch(folder, "--filter=tree:0", f"--shallow-since=@{since - 1} +0000", "origin", self._ref)
        except Stalled as failure:
            told = _told(failure)
            if "no commits selected for shallow" in told or "error processing shallow info" in told:
                return False
            if "does not support" not in told:
                raise
            self._fetch(folder, "--filter=tree:0", f"--depth={_DEEPEST}", "origin", self._ref)
        return True

    def push(self, branch: str, commit: str | None, *, earlier: str) -> None:
        """Moves a branch to a commit, or removes it (None), if it is still at `earlier` (a commit, "" for none)."""
        lease = f"--force-with-lease=refs/heads/{branch}:{earlier}"
        try:
            self._network(self.folder).run(
                "push", "--quiet", "--no-verify", lease, "origin", f"{commit or ''}:refs/heads/{branch}"
            )
        except CommandFailedError as error:
            raise stalled(error, self._address.shown, "push to") from error

    def tidy(self) -> None:
        """Repacks the copy once fetches have left many packs, and drops objects that no reference needs. Where that fails, it is tried again
        after the next fetch: what was fetched can be read all the same."""
        if len(list(self.folder.glob("objects/pack/*.pack"))) > _MOST_PACKS:
            self.local().succeeds("gc", "--quiet", "--prune=now")

    def discard(self) -> None:
        """Deletes the copy. The next fetch makes another."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self, folder: Path) -> None:
        """Creates a bare repository in one step, or removes the locks that a killed git left in an existing one.

        The caller holds the lock of the state folder, so no other process can own those locks.
        """
        if folder.is_dir():
            for lock in (*folder.glob("*.lock"), *folder.glob("refs/**/*.lock"), *folder.glob("gc.pid")):
                lock.unlink()
            return
        fresh = folder.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        Commands(fresh, timeout=self._timeout).run("init", "--quiet", "--bare", "--template=", "--initial-branch=none")
        fresh.rename(folder)

    def _network(self, folder: Path | None = None, config: tuple[tuple[str, str], ...] = ()) -> Commands:
        authorization = authorize(self._address, self._options)
        return Commands(
            folder,
            timeout=self._timeout,
            environment=authorization.environment,
            config=(("remote.origin.url", self._address.url), *authorization.config, *config),
            secrets=authorization.secrets,
            network=True,
        )

    def _fetch(
        self, folder: Path, *arguments: str, feed: bytes | None = None, config: tuple[tuple[str, str], ...] = ()
    ) -> None:
        try:
            self._network(folder, config).run("fetch", *_OPTIONS, *arguments, feed=feed)
        except CommandFailedError as error:
            raise stalled(error, self._address.shown, "fetch from") from error


def _told(failure: Stalled) -> str:
    """Git's messages about a failure."""
    return failure.__cause__.stderr if isinstance(failure.__cause__, CommandFailedError) else ""


# Nobody reads the progress. It distinguishes a long transfer from one that hangs.
_OPTIONS = ("--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")


def _spellings(revision: str) -> tuple[str, ...]:
    if not revision:
        return ()
    if revision.startswith("refs/"):
        return (revision,)
    return (f"refs/heads/{revision}", f"refs/tags/{revision}")


def _head_in(commits: Mapping[str, str], revision: str) -> Head | None:
    """The head that a revision names among these references; None if it names none."""
    for ref in _spellings(revision):
        if ref in commits:
            name = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
            return Head(name, ref, commits.get(f"{ref}^{{}}", commits[ref]))
    return None
