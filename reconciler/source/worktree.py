"""A folder's present files: a working tree, or a folder without a repository."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from reconciler.manifests.structure import nearest
from reconciler.model.errors import Stalled
from reconciler.model.source import SourceTree
from reconciler.source.selection import EntryKind, Scope, TreeLimits, load
from reconciler.source.walk import select


class WorkingTree:
    """path: the folder. subdirectory, templates: the part to read, see `Scope`. Links may lead anywhere inside `path`, but not out of
    it."""

    def __init__(
        self, path: str | Path, subdirectory: str = "", *, templates: str = "", limits: TreeLimits | None = None
    ) -> None:
        self._path = Path(path)
        self._scope = Scope.of(subdirectory, templates)
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
        return SourceTree(revision=None, files=files, root=str(self._path), skipped=skipped)


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
        if self._is_link(path):
            return os.fsencode((self._path / path).readlink())
        # The file may have become a link or a pipe since it was listed.
        descriptor = os.open(self._path / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def size(self, path: str) -> int:
        return os.lstat(self._path / path).st_size

    def _is_link(self, path: str) -> bool:
        return stat.S_ISLNK(os.lstat(self._path / path).st_mode)


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.LINK
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.FOLDER
    return EntryKind.FILE if entry.is_file(follow_symlinks=False) else EntryKind.OTHER
