"""A commit's files, read from a repository's object database without a working tree."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable

from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands
from reconciler.source.failures import OPERATION_FAILED
from reconciler.source.object_reader import ObjectReader
from reconciler.source.selection import EntryKind, Scope, TreeLimits, load, too_large
from reconciler.source.walk import select

_KINDS = {0o100000: EntryKind.FILE, 0o040000: EntryKind.FOLDER, 0o120000: EntryKind.LINK, 0o160000: EntryKind.SUBMODULE}
_KIND_BITS = 0o170000
_ENTRY = re.compile(rb"([0-7]{1,7}) ([^\0]+)\0(.{20})", re.DOTALL)
_LARGEST_FOLDER = 32 * 2**20
"""The largest tree object in bytes, with about a million entries."""

Loaded = tuple[dict[str, bytes], tuple[tuple[str, str], ...]]
_Entries = dict[str, tuple[EntryKind, str]]
"""By name: its kind, and the name of its object."""


def read_commit(
    commands: Commands,
    commit: str,
    scope: Scope,
    limits: TreeLimits,
    *,
    absent: set[str] | None = None,
    fetch: Callable[[Iterable[str]], None] | None = None,
    prefix: str = "",
) -> Loaded:
    """The files of a commit in a scope, and those left out with the reason.

    absent: objects that the repository lacks. `fetch` gets those that are needed, in as few requests as possible. prefix: a folder to
    treat as the root. Raises `Stalled` for a tree that cannot be read.
    """
    lacking = set(absent or ())
    while True:
        try:
            # a new reader after every fetch, since an open one may not see new objects
            with ObjectReader(commands) as reader:
                tree = CommitTree(reader, commit, lacking, prefix)
                selection = select(tree, scope, limits)
                if not tree.wanted:  # ignore rules and links come first, since they decide what else is read
                    for path in selection.files.values():
                        tree.want(path)
                if not tree.wanted or fetch is None:
                    tree.prepare(selection.files.values(), limits)
                    return load(tree, selection, limits)
        except CommandFailedError as error:
            raise Stalled(f"commit {commit[:12]} cannot be read: {error.summary}", reason=OPERATION_FAILED) from error
        fetch(tree.wanted)
        lacking -= tree.wanted


class CommitTree:
    """A commit as a tree of files. wanted: absent objects that were needed, which are read as empty."""

    def __init__(self, reader: ObjectReader, commit: str, absent: set[str], prefix: str = "") -> None:
        self._reader = reader
        self._absent = absent
        self._folders: dict[str, _Entries | None] = {}
        self._by_object: dict[str, _Entries] = {}
        self._sizes: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}
        self._commit = commit
        self._prefix = prefix
        self.wanted: set[str] = set()

    def entries(self, folder: str) -> dict[str, EntryKind] | None:
        listed = self._list(folder)
        return None if listed is None else {name: kind for name, (kind, _) in listed.items()}

    def content(self, path: str) -> bytes:
        self.want(path)
        name = self._object(path)
        if name in self.wanted:
            return b""
        found = self._contents.get(name)
        return self._reader.content(name) if found is None else found

    def size(self, path: str) -> int:
        self.want(path)
        name = self._object(path)
        if name not in self._sizes:
            self._sizes[name] = 0 if name in self.wanted else self._reader.head(name)[1]
        return self._sizes[name]

    def prepare(self, paths: Iterable[str], limits: TreeLimits) -> None:
        """Reads files ahead, all at once, as far as they are within the limits."""
        names = [name for name in dict.fromkeys(map(self._object, paths)) if name not in self.wanted]
        self._sizes |= {name: size for name, (_, size) in zip(names, self._reader.heads(names), strict=True)}
        wanted: list[str] = []
        room = limits.total_bytes
        for name in names:
            room -= self._sizes[name] if self._sizes[name] <= limits.file_bytes else 0
            if self._sizes[name] <= limits.file_bytes and room >= 0:
                wanted.append(name)
        self._contents = dict(zip(wanted, self._reader.contents(wanted), strict=True))

    def want(self, path: str) -> None:
        """Records an object that must be fetched."""
        name = self._object(path)
        if name in self._absent:
            self.wanted.add(name)

    def _list(self, folder: str) -> _Entries | None:
        if folder not in self._folders:
            self._folders[folder] = self._listed(folder)
        return self._folders[folder]

    def _listed(self, folder: str) -> _Entries | None:
        if not folder:
            return self._entries_of(
                f"{self._commit}^{{tree}}" if not self._prefix else f"{self._commit}:{self._prefix}"
            )
        above, _, name = folder.rpartition("/")
        kind, found = (self._list(above) or {}).get(name, (None, ""))
        return self._entries_of(found) if kind is EntryKind.FOLDER else None

    def _entries_of(self, name: str) -> _Entries:
        """The entries of a tree object. One that occurs at many paths is read and kept once."""
        if name not in self._by_object:
            _, size = self._reader.head(name)
            if size > _LARGEST_FOLDER:
                raise too_large("a folder with about a million entries or more")
            self._by_object[name] = {
                entry.decode("utf-8", "surrogateescape"): (
                    _KINDS.get(int(mode, 8) & _KIND_BITS, EntryKind.OTHER),
                    found.hex(),
                )
                for mode, entry, found in _ENTRY.findall(self._reader.content(name))
                if b"/" not in entry and entry not in {b".", b".."}  # such names can never be checked out
            }
        return self._by_object[name]

    def _object(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        item = (self._list(folder) or {}).get(name)
        if item is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return item[1]
