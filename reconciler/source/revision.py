"""A revision of a local repository, read from its objects, whatever the files in the working tree."""

from __future__ import annotations

import configparser
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Invalid, Stalled
from reconciler.ports import Clock
from reconciler.source.commands import (
    OPERATION_FAILED,
    CommandFailedError,
    Commands,
    allows_removals,
    load_git,
    stalled,
    time_of,
)
from reconciler.source.credentials import GitOptions
from reconciler.source.objects import read_commit
from reconciler.source.selection import Scope, TreeLimits
from reconciler.source.signatures import verify_signatures
from reconciler.source.state import is_rewound


class LocalRevision:
    """path: a working tree, a folder inside one (which is then the root), or a bare repository. revision: anything that git
    understands; it is followed when it moves. scope, options: as for `GitSource`."""

    def __init__(
        self,
        path: str | Path,
        revision: str,
        scope: Scope | None = None,
        *,
        clock: Clock,
        options: GitOptions | None = None,
        limits: TreeLimits | None = None,
    ) -> None:
        self._path = Path(path)
        self._revision = revision
        self._scope = scope or Scope()
        self._clock = clock
        self._options = options or GitOptions()
        self._limits = limits or TreeLimits()
        self._git_dir, self._prefix = find_repository(self._path)
        self._commit = ""
        self._tree: SourceTree | None = None
        self._rewound_at: datetime | None = None

    def read(self) -> SourceTree:
        failure: Stalled | None = None
        try:
            self._follow()
        except Stalled as error:
            failure = error
        if self._tree is None:
            raise failure or Stalled(f"{self._path} cannot be read", reason=OPERATION_FAILED)
        return replace(
            self._tree,
            stalled=None if failure is None else (failure.reason, failure.message),
            rewound=is_rewound(self._rewound_at, self._clock.now(), self._options.rewind_hold),
        )

    def hasten(self) -> None:
        """Does nothing, since every read looks up the revision."""

    def close(self) -> None:
        """Does nothing, since nothing stays open between reads."""

    def _follow(self) -> None:
        # A user's partial clone may lack contents, which Git may fetch, as it would for the user.
        commands = Commands(self._git_dir, timeout=self._options.seconds, network=True)
        commit = commit_of(commands, str(self._path), self._revision)
        if commit == self._commit:
            return
        verify_signatures(self._git_dir, commit, self._options, since=self._commit or None)
        files, skipped = read_commit(commands, commit, self._scope, self._limits, prefix=self._prefix)
        goes_on = bool(self._commit) and commands.succeeds("merge-base", "--is-ancestor", self._commit, commit)
        if self._commit and not goes_on:
            self._rewound_at = self._clock.now()
        allowed = allows_removals(commands, commit, since=self._commit if goes_on else None)
        name = "HEAD" if commit.startswith(self._revision) else self._revision
        self._commit = commit
        self._tree = SourceTree(
            revision=f"{name}@sha1:{commit}",
            files=files,
            committed=datetime.fromtimestamp(time_of(commands, commit), UTC),
            skipped=skipped,
            removals_allowed=allowed,
        )


def commit_of(commands: Commands, place: str, revision: str) -> str:
    """The commit that a revision names. place: the repository's name in messages. Raises `Stalled`."""
    try:
        return commands.line("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except CommandFailedError as error:
        if "dubious ownership" in error.stderr:
            raise stalled(error, place, "read") from error
        raise Stalled(
            f"{place} has no revision {revision!r}",
            reason=OPERATION_FAILED,
            hint="name a branch, tag or commit that `git log` knows there; a shallow clone may need `git fetch`",
        ) from error


def find_repository(
    path: Path, *, hint: str = "leave --revision out to read the folder as it stands"
) -> tuple[Path, str]:
    """The repository that contains a folder, and the folder's path in it. Raises `Invalid` with this hint if there is none."""
    git = load_git()
    try:
        with git.Repo(path, search_parent_directories=True) as repository:
            top = repository.working_tree_dir
            prefix = "" if top is None else path.resolve().relative_to(Path(top).resolve()).as_posix()
            return Path(repository.git_dir).resolve(), "" if prefix == "." else prefix
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, ValueError, configparser.Error) as error:
        raise Invalid(f"{path} is in no Git repository, so it has no revisions", hint=hint) from error
