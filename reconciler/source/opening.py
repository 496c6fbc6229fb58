"""What a path or an address opens: a work tree, a folder or a repository, and the address that a folder was cloned from."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from reconciler.manifests.documents.structure import nearest
from reconciler.model.declared import SourceTree
from reconciler.model.errors import PATH_NOT_FOUND, Invalid, Stalled
from reconciler.ports import Clock, Source
from reconciler.source.commands import Commands
from reconciler.source.credentials import GitOptions
from reconciler.source.selection import EntryKind, Scope, TreeLimits, load
from reconciler.source.walk import select

_SSH_SHORT = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//).+")


def is_remote(repository: str) -> bool:
    """Whether this is a URL or ssh's short form of one (`git@host:group/repository.git`), and not a path."""
    return "://" in repository or bool(_SSH_SHORT.fullmatch(repository))


def place_in_repository(repository: str) -> str | None:
    """Where a folder is in its Git repository, such as infra/capacity; None outside of any, and for a bare repository. Of a URL all is read."""
    if is_remote(repository):
        return "."
    folder = Path(repository or ".").resolve()
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    top = None if is_repository(folder) else top
    return None if top is None else folder.relative_to(top).as_posix()


def is_repository(path: Path) -> bool:
    """Whether the folder is a bare repository, of which only a revision can be read."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


class WorkingTree:
    """path: the folder. scope: the part to read, None for all of it."""

    def __init__(self, path: str | Path, scope: Scope | None = None, *, limits: TreeLimits | None = None) -> None:
        self._path = Path(path)
        self._scope = scope or Scope()
        self._limits = limits or TreeLimits()
        self._good: SourceTree | None = None

    @property
    def has_folder(self) -> bool:
        """Whether the part to read is there, as far as can be told without reading it."""
        return (self._path / self._scope.folder).is_dir()

    def read(self) -> SourceTree:
        try:
            self._good = self._scan()
        except Stalled as failure:
            if self._good is None:
                raise
            return replace(self._good, stalled=(failure.reason, failure.message))
        return self._good

    def hasten(self) -> None:
        """Does nothing, since every read looks at the files."""

    def close(self) -> None:
        """Does nothing, since nothing stays open between reads."""

    def _scan(self) -> SourceTree:
        folder = _Folder(self._path)
        if folder.entries("") is None:
            raise Stalled(
                f"{self._path} is not a folder that can be read",
                reason="PathNotFound",
                hint="name a folder or a Git URL with --repo",
            )
        selection = select(folder, self._scope, self._limits)
        files, skipped = load(folder, selection, self._limits)
        return SourceTree(revision=None, files=files, skipped=skipped)


def near_path(path: str) -> str:
    """`did you mean "clusters/production"?`, by what stands beside a path that does not exist; "" if nothing there is similar."""
    folder = Path(path).parent
    names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    return nearest(path, (str(folder / name) for name in names))


class _Folder:
    """A folder on disk as a tree of files; each folder is listed once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listed: dict[str, dict[str, EntryKind] | None] = {}

    def entries(self, folder: str) -> dict[str, EntryKind] | None:
        if folder not in self._listed:
            try:
                with os.scandir(self._path / folder) as found:
                    self._listed[folder] = {entry.name: _kind(entry) for entry in found}
            except OSError:
                self._listed[folder] = None
        return self._listed[folder]

    def content(self, path: str) -> bytes:
        # The file may have become a link or a pipe since it was listed.
        descriptor = os.open(self._path / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def size(self, path: str) -> int:
        return os.lstat(self._path / path).st_size


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.LINK
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    return EntryKind.FILE if entry.is_file(follow_symlinks=False) else EntryKind.OTHER


_SECONDS = 10.0


def origin_of(folder: Path) -> str | None:
    """The URL of the remote `origin` of the repository with this root folder; None if there is none.

    A folder inside a repository does not count: a file written there would not be that repository's CI file.
    """
    git_dir = folder / ".git"
    if not git_dir.exists():
        return None
    try:
        git = Commands(None, timeout=_SECONDS)
        return git.line_if_any("-C", str(folder), "config", "--get", "remote.origin.url") or None
    except Stalled:  # without git
        return None


def open_source(
    repository: str,
    *,
    clock: Clock,
    revision: str | None = None,
    scope: Scope | None = None,
    options: GitOptions | None = None,
) -> Source:
    """A URL is polled at its revision or default branch. A folder's present files are read, unless a revision is named.

    A local bare repository is read at its HEAD. Raises `Stalled` for anything that is neither a folder nor a URL.
    """
    scope, options = scope or Scope(), options or GitOptions()
    path = Path(repository)
    if not path.is_dir() and is_remote(repository):
        from reconciler.source.git import GitSource

        return GitSource(repository, clock=clock, revision=revision, scope=scope, options=options)
    folder_of(repository)
    from reconciler.source.revision import LocalRevision

    if not revision and is_repository(path):
        revision = "HEAD"
    if revision:
        return LocalRevision(path, revision, scope, clock=clock, options=options)
    if options.allowed_signers:
        raise Invalid(
            f"{repository} is read as it stands, and files have no signatures",
            hint="name a revision with --revision, or leave git.allowedSigners empty",
        )

    return WorkingTree(path, scope)


def folder_of(repository: str) -> Path:
    """The folder of a repository that is no URL. Raises `Stalled` if there is none."""
    if not Path(repository).is_dir():
        raise Stalled(
            f"repository {repository!r} is not a folder",
            reason=PATH_NOT_FOUND,
            hint="name a folder or a Git URL with --repo",
        )
    return Path(repository)


def tree_at(
    repository: str,
    revision: str | None,
    scope: Scope | None = None,
    *,
    clock: Clock,
    options: GitOptions | None = None,
) -> SourceTree:
    """One tree of a repository, for comparisons. revision None: a folder's present files, or the default branch of a URL.

    Raises `Stalled` or `Invalid` if it cannot be read, since there is no last good one to fall back on.
    """
    source = open_source(repository, clock=clock, revision=revision, scope=scope, options=options)
    try:
        tree = source.read()
    finally:
        source.close()
    if tree.stalled is not None:
        raise Stalled(tree.stalled[1], reason=tree.stalled[0])
    return tree
