"""Objects of a Git repository, read by a process that stays."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from types import TracebackType
from typing import Self

from reconciler.model.errors import Stalled
from reconciler.source.child import Child, OutOfTimeError, OutputTooLongError
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, Commands
from reconciler.source.selection import EntryKind, Scope, TreeLimits, load, too_large
from reconciler.source.walk import select

_LONGEST_LINE = 2**18
"""In bytes, including what was read beyond the line."""
_Read = Callable[[Child, float], bytes | None]


class ObjectReader:
    """One `git cat-file` for sizes and one for contents, both started when first asked. Not thread-safe.

    Every failure is a CommandFailedError, after which the reader cannot be used.
    """

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._running = ExitStack()
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def head(self, name: str) -> tuple[str, int]:
        """An object's type (blob, tree, commit, tag) and its length in bytes. name: any that git understands."""
        return self.heads([name])[0]

    def heads(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """The same for many objects at once, since waiting for each answer before the next question would take most of the time."""
        self._ask("--batch-check", names)
        return [self._head("--batch-check") for _ in names]

    def content(self, name: str) -> bytes:
        """The whole object. The caller has checked its length before."""
        return next(self.contents([name]))

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """The contents of many objects, in order. All of them must be consumed before another call."""
        self._ask("--batch", names)
        for _ in names:
            _, length = self._head("--batch")
            body = self._answer("--batch", lambda child, deadline, length=length: child.exactly(length + 1, deadline))  # type: ignore[misc]
            yield body[:length]

    def _ask(self, mode: str, names: Sequence[str]) -> None:
        if mode not in self._children:
            self._children[mode] = self._running.enter_context(self._commands.started("cat-file", mode, feed=True))
        self._children[mode].write("".join(f"{name}\n" for name in names).encode())

    def _head(self, mode: str) -> tuple[str, int]:
        line = self._answer(mode, lambda child, deadline: child.line(deadline, _LONGEST_LINE)).decode(errors="replace")
        match line.split(" "):
            case [_, kind, length] if length.isdigit():
                return kind, int(length)
            case _:
                raise CommandFailedError("cat-file", 0, f"fatal: {line}")

    def _answer(self, mode: str, read: _Read) -> bytes:
        child = self._children[mode]
        deadline = monotonic() + self._commands.timeout
        try:
            answer = read(child, deadline)
        except OutOfTimeError as error:
            raise CommandFailedError("cat-file", -1, "", timeout=self._commands.exceeded(deadline)) from error
        except OutputTooLongError as error:
            raise CommandFailedError("cat-file", -1, "fatal: its answer is too long") from error
        if answer is None:
            raise self._commands.failure("cat-file", -1, child.errors)
        return answer


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
        kept = self._contents.get(name)
        return self._reader.content(name) if kept is None else kept

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
