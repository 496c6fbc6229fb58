"""The files after merging one revision or pull request into another, by Git's own merge, without changing the repository.

Comparing the two branches directly would show changes made only on the base as undone by the merge. New objects of a merge go to a
folder of their own, which is deleted afterwards.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import finalize

from reconciler.model.declared import SourceTree
from reconciler.model.errors import PATH_NOT_FOUND, Invalid, Stalled
from reconciler.ports import PullRequest
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, Commands, new_objects_in, person, stalled
from reconciler.source.credentials import GitOptions, parse_address
from reconciler.source.objects import Loaded, read_commit
from reconciler.source.opening import WorkingTree, folder_of, is_remote, is_repository, near_path
from reconciler.source.remote import Remote
from reconciler.source.revision import commit_of, find_repository
from reconciler.source.selection import Scope, TreeLimits
from reconciler.source.signatures import verify_signatures

_CONFLICT = 1
"""Exit status of `git merge-tree` for a merge with conflicts, and of `git merge-base` if there is no merge base."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two trees to compare. conflicts: files that Git cannot merge. Then `head` is the branch itself, and `base` the merge base. So what
    only the base has changed since is no change of the head. A folder that one side lacks, such as a new cluster's, is empty there."""

    base: SourceTree
    head: SourceTree
    conflicts: tuple[str, ...] = ()
    names: tuple[str, str] | None = None
    """The names of two folders, which have no revisions."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """`BASE..HEAD`, or `BASE...HEAD` with since_merge_base. head "": the working tree."""

    base: str
    head: str
    since_merge_base: bool = False

    @classmethod
    def parse(cls, words: str) -> Revisions:
        """The revisions. Raises `Invalid` for text of neither form."""
        base, separator, head = words.partition("..")
        since_merge_base = head.startswith(".")
        head = head.removeprefix(".")
        if not separator or not base or head.startswith("."):
            raise Invalid(f"{words!r} is not BASE..HEAD: write two revisions, such as main..my-branch.")
        return cls(base, head, since_merge_base)


def sides_of(
    repository: str, revisions: Revisions, scope: Scope | None = None, options: GitOptions | None = None
) -> Sides:
    """BASE, and the result of merging HEAD into it.

    With `...`, or if the two conflict, the merge base of both, and HEAD. Raises `Stalled` or `Invalid` if a revision cannot be read.
    """
    scope, options = scope or Scope(), options or GitOptions()
    if not Path(repository).is_dir() and is_remote(repository):
        return _remote_sides(repository, revisions, scope, options)
    path = folder_of(repository)
    with tempfile.TemporaryDirectory(prefix="headroom-merge-") as scratch:
        copy = _LocalCopy(path, Path(scratch), options)
        base, head = copy.commit(revisions.base), copy.commit(revisions.head or "HEAD")
        if revisions.head or is_repository(path):
            copy.verify(base, head)
            return copy.sides(base, head, revisions, scope)
        present = WorkingTree(path, scope)
        tree = copy.either.read(present.read, SourceTree(None))
        if revisions.since_merge_base or copy.descends(head, base):
            copy.verify(base)
            return Sides(copy.base_tree(base, head, revisions, scope), tree)
        head = copy.commit_of_working_tree(head)
        copy.verify(base)
        merged, conflicts = copy.merge(base, head)
        before = copy.base_tree(base, head, replace(revisions, since_merge_base=bool(conflicts)), scope)
        if conflicts:
            return Sides(before, tree, conflicts)
        files, skipped = copy.load(merged, scope)
        return Sides(before, SourceTree(None, files, skipped=skipped))


def check_folders(*folders: str) -> None:
    """Raises `Invalid` for one that does not exist, with the name of one beside it that is near."""
    for folder in folders:
        if not Path(folder).is_dir():
            hints = (near_path(folder), "write BASE..HEAD for two revisions, or two folders")
            raise Invalid(f"{folder!r} is not a folder", hint="; ".join(filter(None, hints)))


def folders(base: str, head: str, scope: Scope) -> Sides:
    """The present files of two folders."""
    check_folders(base, head)
    either = _EitherSide()
    trees = (WorkingTree(Path(folder), scope) for folder in (base, head))
    before, after = (either.read(tree.read, SourceTree(None)) for tree in trees)
    return Sides(before, after, names=(base, head))


def _remote_sides(repository: str, revisions: Revisions, scope: Scope, options: GitOptions) -> Sides:
    if not revisions.head:
        raise Invalid(
            f"{repository} is a URL and has no working tree",
            hint=f"name both revisions, such as {revisions.base}..my-branch",
        )
    with tempfile.TemporaryDirectory(prefix="headroom-git-", ignore_cleanup_errors=True) as folder:
        return sides_in(Path(folder), repository, revisions, scope, options)


def sides_in(folder: Path, repository: str, revisions: Revisions, scope: Scope, options: GitOptions) -> Sides:
    """The same as `sides_of`, for a URL. folder: the clone's; if it is kept, the next call fetches only what is new."""
    remote = _remote(folder, repository, options)
    heads = [remote.head(revision) for revision in (revisions.base, revisions.head)]
    # All of their history, and only the contents that are read.
    remote.fetch_histories(heads)
    copy = _Copy(
        parse_address(repository).url,
        remote.folder,
        remote.lazy(),
        lambda tree, scope: remote.read(tree, scope, TreeLimits()),
        options,
    )
    base, head = (each.commit for each in heads)
    copy.verify(base, head)
    return copy.sides(base, head, revisions, scope)


def _remote(folder: Path, repository: str, options: GitOptions) -> Remote:
    return Remote(parse_address(repository), folder / "repository.git", options)


class _EitherSide:
    """Reads two trees of which one may lack the folder, and not both."""

    def __init__(self) -> None:
        self._one_lacks_it = False

    def read(self, read: Callable[[], SourceTree], empty: SourceTree) -> SourceTree:
        try:
            return read()
        except Stalled as error:
            if error.reason != PATH_NOT_FOUND or self._one_lacks_it:
                raise
            self._one_lacks_it = True
            return replace(empty, stalled=(error.reason, error.message))


@dataclass
class _Copy:
    """A repository in which merges can be made. place: its name in messages. commands: Git on it. load: reads the files of a commit or
    tree."""

    place: str
    git_dir: Path
    commands: Commands
    load: Callable[[str, Scope], Loaded]
    options: GitOptions
    either: _EitherSide = field(default_factory=_EitherSide)

    def sides(self, base: str, head: str, revisions: Revisions, scope: Scope) -> Sides:
        """The base, and what merging makes of it. base, head: commits."""
        shown = revisions.head or "HEAD"
        if revisions.since_merge_base or self.descends(head, base):
            return Sides(self.base_tree(base, head, revisions, scope), self.tree(head, shown, head, scope))
        merged, conflicts = self.merge(base, head)
        before = self.base_tree(base, head, replace(revisions, since_merge_base=bool(conflicts)), scope)
        return Sides(before, self.tree(merged, shown, head, scope), conflicts)

    def tree(self, name: str, revision: str, commit: str, scope: Scope) -> SourceTree:
        """A tree. name: the object to read. revision, commit: what it is shown as."""
        shown = "HEAD" if commit.startswith(revision) else revision
        empty = SourceTree(f"{shown}@sha1:{commit}")

        def read() -> SourceTree:
            files, skipped = self.load(name, scope)
            return replace(empty, files=files, skipped=skipped)

        return self.either.read(read, empty)

    def base_tree(self, base: str, head: str, revisions: Revisions, scope: Scope) -> SourceTree:
        """The base side. base, head: commits. A merge base that is not a branch's tip is not shown under the branch's name."""
        if not revisions.since_merge_base:
            return self.tree(base, revisions.base, base, scope)
        shared = self.merge_base(base, head)
        shown = revisions.base if shared == base else f"merge-base({revisions.base})"
        return self.tree(shared, shown, shared, scope)

    def verify(self, *commits: str) -> None:
        """Raises `Stalled` unless each commit is signed by an allowed signer, if the options require that."""
        for commit in commits:
            verify_signatures(self.git_dir, commit, self.options, since=None)

    def descends(self, commit: str, ancestor: str) -> bool:
        try:
            self.commands.run("merge-base", "--is-ancestor", ancestor, commit)
        except CommandFailedError as error:
            if error.status == _CONFLICT:
                return False
            raise stalled(error, self.place, "read the history of") from error
        return True

    def merge_base(self, base: str, head: str) -> str:
        try:
            return self.commands.line("merge-base", base, head)
        except CommandFailedError as error:
            raise self._unrelated(base, head) from error

    def merge(self, base: str, head: str) -> tuple[str, tuple[str, ...]]:
        """The merged tree; on conflict the head, and the files in conflict."""
        self.merge_base(base, head)
        try:
            output = self.commands.run("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", base, head)
        except CommandFailedError as error:
            if error.status != _CONFLICT:
                raise stalled(error, self.place, "merge within") from error
            names = [name.decode("utf-8", "replace") for name in error.output.split(b"\0") if name]
            return head, tuple(sorted(set(names[1:])))
        return output.rstrip(b"\0").decode(), ()

    def _unrelated(self, base: str, head: str) -> Stalled:
        return Stalled(
            f"the commits {base[:12]} and {head[:12]} have no common ancestor, so there is nothing to merge",
            reason=OPERATION_FAILED,
            hint="a shallow clone lacks it: fetch all of its history (`git fetch --unshallow`, or fetch-depth: 0 in CI)",
        )


class _LocalCopy(_Copy):
    """The user's own repository. scratch: a folder for new objects."""

    def __init__(self, path: Path, scratch: Path, options: GitOptions) -> None:
        git_dir, prefix = find_repository(path, hint="name a Git repository with --repo, or compare two folders")
        folder = path.resolve()
        self._top = folder.parents[len(Path(prefix).parts) - 1] if prefix else folder
        seconds = options.seconds
        try:
            self._environment = new_objects_in(scratch, Commands(git_dir, timeout=seconds))
        except CommandFailedError as error:
            raise stalled(error, str(path), "read") from error
        self._scratch = scratch
        # A partial clone may lack contents, which Git may fetch, as it would for the user.
        commands = Commands(git_dir, timeout=seconds, environment=self._environment, network=True)

        def load(tree: str, scope: Scope) -> Loaded:
            return read_commit(commands, tree, scope, TreeLimits(), prefix=prefix)

        super().__init__(str(path), git_dir, commands, load, options)

    def commit(self, revision: str) -> str:
        return commit_of(self.commands, self.place, revision)

    def commit_of_working_tree(self, parent: str) -> str:
        """The present files as a commit on top of the one checked out. Index and branch stay unchanged."""
        index = self._scratch / "index"
        try:
            if (self.git_dir / "index").is_file():
                shutil.copyfile(self.git_dir / "index", index)
            commands = Commands(
                self.git_dir,
                timeout=self.options.seconds,
                environment={
                    **self._environment,
                    **person(DATE="@0 +0000"),
                    "GIT_INDEX_FILE": str(index),
                    "GIT_WORK_TREE": str(self._top),
                },
            )
            commands.run("-C", str(self._top), "add", "--all")
            tree = commands.line("write-tree")
            return commands.line("commit-tree", "-p", parent, "-m", "the working tree", tree)
        except CommandFailedError as error:
            raise stalled(error, self.place, "read") from error


class PullRequestTrees:
    """url: the target repository of the pull requests, from which their heads can be fetched. For use by one thread."""

    def __init__(self, url: str, scope: Scope, options: GitOptions) -> None:
        self._url = url
        self._scope = scope
        self._options = options
        key = hashlib.sha256(url.encode()).hexdigest()[:16]
        folder = Path(options.state or tempfile.mkdtemp(prefix="headroom-git-"))
        if not options.state:
            finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = folder / f"pull-requests-{key}"

    def sides(self, pull: PullRequest) -> Sides:
        """The base and the merge. Raises `Stalled`; a clone that cannot be used is made again next time."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sides = sides_in(
                self._folder, self._url, Revisions(pull.base_branch, pull.head_ref), self._scope, self._options
            )
            _remote(self._folder, self._url, self._options).tidy()
        except Stalled as failure:
            if failure.reason == OPERATION_FAILED:
                shutil.rmtree(self._folder, ignore_errors=True)
            raise
        _, _, commit = (sides.head.revision or "").partition("@")
        # Readers know the branch's name, not the forge's reference, which is a number.
        return replace(sides, head=replace(sides.head, revision=f"{pull.head_branch}@{commit}"))
