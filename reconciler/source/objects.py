"""A commit's files, read from a repository's object database without a working tree. Used by git and by revision."""

from __future__ import annotations

import configparser
import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.model.errors import Stalled
from reconciler.source.commands import Commands, load_git
from reconciler.source.failures import OPERATION_FAILED
from reconciler.source.selection import Kind, Limits, load, select

_KINDS = {0o100000: Kind.FILE, 0o040000: Kind.FOLDER, 0o120000: Kind.LINK, 0o160000: Kind.SUBMODULE}
_KIND_BITS = 0o170000

Loaded = tuple[dict[str, bytes], tuple[tuple[str, str], ...]]


def read_commit(
    commands: Commands,
    folder: Path,
    commit: str,
    subdirectory: str,
    limits: Limits,
    *,
    absent: set[str] | None = None,
    fetch: Callable[[Iterable[str]], None] | None = None,
    prefix: str = "",
) -> Loaded:
    """The manifests under a subdirectory of a commit, and what was left out for cause.

    absent: objects that the repository lacks; `fetch` brings over those that turn out to be wanted, in as few requests as
    possible. prefix: a folder that is taken for the root. Raises `Stalled` for a tree that cannot be read.
    """
    with _opened(commands, folder) as repository:
        tree = CommitTree(repository, commit, absent or set(), prefix)
        selection = select(tree, subdirectory, limits)
        while tree.wanted:  # rules and links come first: they decide what else is read
            tree.bring(fetch)
            selection = select(tree, subdirectory, limits)
        for path in selection.files.values():
            tree.want(path)
        tree.bring(fetch)
        return load(tree, selection, limits)


@contextmanager
def _opened(commands: Commands, folder: Path) -> Iterator[Any]:
    git = load_git()
    try:
        with git.Repo(folder) as repository:
            repository.git.update_environment(**commands.environment)
            yield repository
    except (git.GitError, git.exc.ODBError, ValueError, configparser.Error) as error:
        raise Stalled(
            f"commit cannot be read from {folder}: {type(error).__name__} {error}".rstrip(), reason=OPERATION_FAILED
        ) from error


class CommitTree:
    """A commit as a tree of files. wanted: absent objects that were asked for; until `bring` they read as empty."""

    def __init__(self, repository: Any, commit: str, absent: set[str], prefix: str = "") -> None:
        self._absent = absent
        self._folders: dict[str, dict[str, Any] | None] = {}
        self._root = repository.commit(commit).tree
        for part in filter(None, prefix.split("/")):
            self._root = self._root / part
        self.wanted: set[str] = set()

    def entries(self, folder: str) -> dict[str, Kind] | None:
        listed = self._list(folder)
        return None if listed is None else {name: _kind(item) for name, item in listed.items()}

    def content(self, path: str) -> bytes:
        blob = self._item(path)
        self.want(path)
        if blob.hexsha in self.wanted:
            return b""
        with _all_or_nothing(path):
            return bytes(blob.data_stream.read())

    def size(self, path: str) -> int:
        with _all_or_nothing(path):
            return int(self._item(path).size)

    def want(self, path: str) -> None:
        """Notes an object that the next `bring` must bring over."""
        name = self._item(path).hexsha
        if name in self._absent:
            self.wanted.add(name)

    def bring(self, fetch: Callable[[Iterable[str]], None] | None) -> None:
        if self.wanted and fetch is not None:
            fetch(self.wanted)
        self._absent -= self.wanted
        self.wanted = set()

    def _list(self, folder: str) -> dict[str, Any] | None:
        if folder not in self._folders:
            above, _, name = folder.rpartition("/")
            item = self._root if not folder else (self._list(above) or {}).get(name)
            if item is None or _kind(item) is not Kind.FOLDER:
                self._folders[folder] = None
            else:
                # by path: a submodule has no name without a .gitmodules that declares it
                self._folders[folder] = {each.path.rpartition("/")[2]: each for each in item}
        return self._folders[folder]

    def _item(self, path: str) -> Any:
        folder, _, name = path.rpartition("/")
        item = (self._list(folder) or {}).get(name)
        if item is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return item


@contextmanager
def _all_or_nothing(path: str) -> Iterator[None]:
    """An object that git does not give is a damaged repository, not a file to leave out."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Stalled(f"{path} cannot be read from the repository: {error}", reason=OPERATION_FAILED) from error


def _kind(item: Any) -> Kind:
    return _KINDS.get(item.mode & _KIND_BITS, Kind.OTHER)
