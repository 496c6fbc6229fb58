"""A Git repository as a source: fetched, verified, and left alone for a while after failures.

A back-off belongs to one target: the remote, or one commit. A bad commit waits longer and longer, while a newer one is tried at
once.

A poll without news costs one `ls-remote`. The last good tree stays in force while the remote cannot be reached, the branch is gone or
the newest commit cannot be used. A restart keeps it too. A tree is never read in part.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TextIO

import msgspec

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Stalled
from reconciler.model.quantity import doubled
from reconciler.ports import Clock
from reconciler.source.child import SILENCE
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, allows_removals, stalled, time_of
from reconciler.source.credentials import GitOptions, parse_address
from reconciler.source.objects import read_commit
from reconciler.source.remote import GOOD, PROVEN, Head, Remote
from reconciler.source.selection import Scope, TreeLimits
from reconciler.source.signatures import verify_signatures
from reconciler.source.state import Good, PassRecord, is_rewound, load_good, save_good

FIRST = timedelta(milliseconds=750)
LONGEST = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Backoff:
    """failures: of one target, in a row; failure: the last of them. not_before: when the target may be tried again."""

    target: str
    failures: int
    not_before: datetime
    failure: Stalled

    @classmethod
    def after(cls, failure: Stalled, previous: Backoff | None, target: str, now: datetime) -> Backoff:
        """The back-off after one more failure of the target. The count of another target starts at one."""
        failures = previous.failures + 1 if previous is not None and previous.target == target else 1
        return cls(target, failures, now + retry_delay(failures, target), failure)

    def allows(self, target: str, now: datetime) -> bool:
        """Whether a target may be tried now. A clock that was set back must not prolong the wait beyond the longest delay."""
        return target != self.target or now >= self.not_before or self.not_before - now > LONGEST


def retry_delay(failures: int, seed: object) -> timedelta:
    """750 ms after the first failure, doubled by each further one up to 15 minutes. The delay is then shortened by up to a
    tenth, which depends on the seed, so that many daemons do not return in step."""
    delay = doubled(FIRST, failures - 1, LONGEST)
    digest = hashlib.sha256(repr((seed, failures)).encode()).digest()
    return delay * (1 - digest[0] / 2560)


NEVER_ENDED = "PassDidNotEnd"
"""Reason of a stall: passes of the newest commit do not end."""
STORAGE_FAILED = "StorageOperationFailed"
_REMOTE = "remote"
_LOCK_AGAIN = 0.05
"""Seconds between two attempts to take a lock."""
_PATIENCE = 5
"""After this many failures in a row the local copy is replaced, even if it still looks intact."""


class GitSource:
    """url: https, http, ssh or file. revision: branch, tag or full commit name, None for the default branch.
    scope: the part to read, None for all of it. Thread-safe.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        revision: str | None = None,
        scope: Scope | None = None,
        options: GitOptions | None = None,
        limits: TreeLimits | None = None,
    ) -> None:
        address, options = parse_address(url), options or GitOptions()
        self._url = address.shown
        self._clock = clock
        self._revision = revision or None
        self._scope = scope or Scope()
        self._options = options
        self._limits = limits or TreeLimits()
        self._temporary = None if options.state else Path(tempfile.mkdtemp(prefix="headroom-git-"))
        # One folder for each revision: the last good commit of one branch says nothing about another.
        key = hashlib.sha256(f"{address.url}\0{self._revision or ''}".encode()).hexdigest()[:16]
        self._folder = (self._temporary or Path(options.state)) / key
        self._remote = Remote(address, self._folder / "repository.git", options)
        self.passes = PassRecord(self._folder, clock)
        self._earlier: SourceTree | None = None
        """The tree of the last commit of which a pass ended; None until it is needed."""
        self._lock = Lock()
        self._restored = False
        self._good: Good | None = None
        self._tree: SourceTree | None = None
        self._backoffs: dict[str, Backoff] = {}

    def hasten(self) -> None:
        """Forgets the back-off."""
        with self._lock:
            self._backoffs = {}
            self.passes.try_again()

    def read(self) -> SourceTree:
        with self._lock:
            try:
                with self._exclusively():
                    self._restore()
                    self._poll(self._clock.now())
            except Stalled as failure:
                if self._tree is None:
                    raise
                return self._present(failure)
            return self._present(None)

    def close(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _present(self, failure: Stalled | None) -> SourceTree:
        assert self._tree is not None
        assert self._good is not None
        unfinished = self.passes.unfinished(self._good.commit)
        if unfinished:
            self._earlier = self._earlier or self._tree_of(self.passes.proven, self._good)
        stalled = None if failure is None else (failure.reason, failure.message)
        return replace(
            self._earlier if unfinished and self._earlier is not None else self._tree,
            stalled=(NEVER_ENDED, unfinished) if unfinished else stalled,
            rewound=is_rewound(self._good.rewound_at, self._clock.now(), self._options.rewind_hold),
        )

    def _tree_of(self, commit: str, good: Good) -> SourceTree:
        """The tree of an earlier commit. An empty one, if the copy lacks the commit: what the cluster has then stays as it is."""
        try:
            earlier = msgspec.structs.replace(good, commit=commit, time=time_of(self._remote.local(), commit))
            return self._load(earlier)
        except (CommandFailedError, Stalled):
            return SourceTree(None)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Locks the state folder for one poll, since two processes may be given the same one."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self._folder / "lock").open("w") as file:
                self._wait_for(file)
                yield
        except OSError as error:
            raise Stalled(
                f"state folder {self._folder} cannot be used ({error.strerror or error})",
                reason=STORAGE_FAILED,
                hint="set git.state to a folder that this user may write to, with room on its disk",
            ) from error

    def _wait_for(self, lock: TextIO) -> None:
        """Takes the lock, but gives up after a while, so that a hanging process does not make this one hang too."""
        deadline = monotonic() + min(self._options.seconds, SILENCE)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if monotonic() > deadline:
                    raise Stalled(
                        f"state folder {self._folder} is in use by another process",
                        reason=STORAGE_FAILED,
                        hint="let each daemon have a folder of its own in git.state, or end the other process",
                    ) from error
                sleep(_LOCK_AGAIN)
            else:
                return

    def _restore(self) -> None:
        """Loads the last good tree of an earlier process, once."""
        if self._restored:
            return
        self._restored = True
        good = load_good(self._folder)
        if good is None:
            return
        try:
            self._tree = self._load(good, whole=True)
        except Stalled:
            # The copy is damaged, or was made for another subdirectory. The commit's name still reveals a force-push.
            self._tree = None
            self._remote.discard()
        self._good = good

    def _poll(self, now: datetime) -> None:
        with self._backing_off(_REMOTE, _REMOTE, now):
            head = self._remote.head(self._revision)
        good = self._good
        if good is not None and self._tree is not None and (head.name, head.commit) == (good.name, good.commit):
            self._backoffs.pop("commit", None)
            return
        with self._backing_off("commit", head.commit, now):
            had_copy = self._remote.folder.is_dir()
            try:
                self._attempt(head, now)
            except Stalled as failure:
                if failure.reason != OPERATION_FAILED or self._is_sound():
                    raise
                self._remote.discard()
                if not had_copy:
                    raise
                self._attempt(head, now)

    def _attempt(self, head: Head, now: datetime) -> None:
        try:
            self._take(head, now)
        except CommandFailedError as error:
            raise stalled(error, self._url, "read the copy of") from error

    def _is_sound(self) -> bool:
        """Whether git finds the copy whole, and a restart could load the last good tree from it. If not, the copy is made again."""
        backoff = self._backoffs.get("commit")
        if self._good is None or (backoff is not None and backoff.failures >= _PATIENCE):
            return False
        try:
            self._load(self._good, whole=True)
            self._remote.local().run("fsck", "--no-dangling", "--no-progress")
        except (Stalled, CommandFailedError):
            return False
        return True

    @contextmanager
    def _backing_off(self, slot: str, target: str, now: datetime) -> Iterator[None]:
        backoff = self._backoffs.get(slot)
        if backoff is not None and not backoff.allows(target, now):
            # A new exception each time, since one that is raised again and again collects an ever longer traceback.
            failure = backoff.failure
            raise Stalled(failure.message, reason=failure.reason, hint=failure.hint)
        try:
            yield
        except Stalled as error:
            self._backoffs[slot] = Backoff.after(error, backoff, target, now)
            raise
        self._backoffs.pop(slot, None)

    def _take(self, head: Head, now: datetime) -> None:
        """Fetches the head and puts it into force. Raises `Stalled`, with nothing changed, if that is impossible."""
        commit = self._remote.fetch(head)
        local = self._remote.local()
        if self._options.allowed_signers:
            since = None if self._good is None else self._good.commit
            verify_signatures(self._remote.commits(commit), commit, self._options, since=since)
        good = Good(head.name, commit, time_of(local, commit))
        tree = self._load(good)
        before = self._good
        allowed = allows_removals(local, commit, since=None)
        if before is not None:
            goes_on = before.commit == commit
            if not goes_on:
                goes_on, among = self._remote.descends(commit, earlier=before.commit, earlier_time=before.time)
                allowed = allowed or among
            good = msgspec.structs.replace(good, rewound_at=before.rewound_at if goes_on else now)
        tree = replace(tree, removals_allowed=allowed)
        if before is not None and before.commit == self.passes.proven and self._remote.has(before.commit):
            local.run("update-ref", PROVEN, before.commit)
        local.run("update-ref", GOOD, commit)
        self._remote.keep_commits(commit)
        save_good(self._folder, good)
        self._good, self._tree = good, tree
        self._remote.tidy()

    def _load(self, good: Good, *, whole: bool = False) -> SourceTree:
        """The tree of a commit. whole: the copy must have all of it already, and nothing is fetched."""
        if whole:
            files, skipped = read_commit(self._remote.local(), good.commit, self._scope, self._limits)
        else:
            files, skipped = self._remote.read(good.commit, self._scope, self._limits)
        return SourceTree(good.revision, files, committed=datetime.fromtimestamp(good.time, UTC), skipped=skipped)
