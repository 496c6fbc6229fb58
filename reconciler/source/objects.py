"""The files of a commit, read from the objects of a Git repository by a few commands, however many files there are."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable
from posixpath import join

from reconciler.model.errors import Stalled
from reconciler.source.commands import OPERATION_FAILED, CommandFailedError, Commands, TooMuchOutputError
from reconciler.source.selection import IGNORE_FILE, EntryKind, Scope, TreeLimits, load, too_large
from reconciler.source.walk import select

_KINDS = {b"100": EntryKind.FILE, b"040": EntryKind.FOLDER, b"120": EntryKind.LINK, b"160": EntryKind.SUBMODULE}
"""By the first half of a mode: the second half has permissions."""
_LONGEST_ENTRY = 200
"""Bytes of an entry in a list, on average at most."""

Loaded = tuple[dict[str, bytes], tuple[tuple[str, str], ...]]
Fetch = Callable[[Iterable[str]], None]
_Entries = dict[str, tuple[EntryKind, str]]
"""By name: its kind, and the name of its object."""


def read_commit(
    commands: Commands,
    commit: str,
    scope: Scope,
    limits: TreeLimits,
    *,
    absent: Collection[str] = (),
    fetch: Fetch | None = None,
    prefix: str = "",
) -> Loaded:
    """The files of a commit in a scope, and those left out with the reason.

    absent: objects that the repository lacks. `fetch` gets those that are needed, in as few requests as possible. prefix: a folder to
    treat as the root. Raises `Stalled` for a tree that cannot be read.
    """
    root = f"{commit}:{prefix}" if prefix else f"{commit}^{{tree}}"
    tree = _CommitTree(commands, root, limits, set(absent), fetch)
    try:
        tree.list_below(scope.folder)
        if scope.templates_apart:
            tree.list_below(scope.templates)
        # The rules decide what else is read.
        tree.read_ahead(tree.ignore_files())
        selection = select(tree, scope, limits)
        tree.read_ahead(selection.files)
        return load(tree, selection, limits)
    except CommandFailedError as error:
        raise Stalled(f"commit {commit[:12]} cannot be read: {error.summary}", reason=OPERATION_FAILED) from error


class _CommitTree:
    """A commit as a tree of files."""

    def __init__(
        self, commands: Commands, root: str, limits: TreeLimits, absent: set[str], fetch: Fetch | None
    ) -> None:
        self._commands = commands
        self._root = root
        self._limits = limits
        self._absent = absent
        self._fetch = fetch
        self._folders: dict[str, _Entries] = {}
        self._sizes: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}

    def list_below(self, folder: str) -> None:
        """Lists all that is below a folder, if it is there, in one command."""
        if self._is_folder(folder):
            self._list(folder, "-r", "-t")

    def ignore_files(self) -> list[str]:
        """The `.sourceignore` files in the folders that were listed."""
        return [join(folder, IGNORE_FILE) for folder, entries in self._folders.items() if IGNORE_FILE in entries]

    def read_ahead(self, paths: Iterable[str]) -> None:
        """Reads files all at once, as far as they are within the limits. What the repository lacks is fetched before."""
        names = list(dict.fromkeys(map(self._object, paths)))
        lacking = self._absent.intersection(names)
        if lacking and self._fetch is not None:
            self._fetch(lacking)
            self._absent -= lacking
        self._sizes |= zip(names, sizes_of(self._commands, names), strict=True)
        wanted: list[str] = []
        room = self._limits.total_bytes
        for name in names:
            if self._sizes[name] <= min(self._limits.file_bytes, room):
                room -= self._sizes[name]
                wanted.append(name)
        self._contents |= zip(wanted, contents_of(self._commands, wanted), strict=True)

    def entries(self, folder: str) -> dict[str, EntryKind] | None:
        if folder not in self._folders and self._is_folder(folder):
            self._list(folder)
        listed = self._folders.get(folder)
        return None if listed is None else {name: kind for name, (kind, _) in listed.items()}

    def size(self, path: str) -> int:
        return self._sizes[self._object(path)]

    def content(self, path: str) -> bytes:
        content = self._contents.get(self._object(path))
        if content is None:
            raise OSError(errno.EFBIG, "too much is read already", path)
        return content

    def _is_folder(self, folder: str) -> bool:
        above, _, name = folder.rpartition("/")
        return not folder or (self.entries(above) or {}).get(name) is EntryKind.FOLDER

    def _list(self, folder: str, *options: str) -> None:
        name = self._object(folder) if folder else self._root
        try:
            output = self._commands.run(
                "ls-tree", "-z", "--full-tree", *options, name, most=self._limits.entries * _LONGEST_ENTRY
            )
        except TooMuchOutputError as error:
            raise too_large(f"more than {self._limits.entries:,} files and folders") from error
        self._folders[folder] = {}
        for line in filter(None, output.split(b"\0")):
            facts, _, path = line.partition(b"\t")
            mode, _, found = facts.split(b" ")
            shown = join(folder, path.decode("utf-8", "surrogateescape"))
            above, _, name = shown.rpartition("/")
            # A name with a slash or a dot alone can never be checked out.
            if above in self._folders and name not in {".", ".."}:
                kind = _KINDS.get(mode[:3], EntryKind.OTHER)
                self._folders[above][name] = (kind, found.decode())
                if options and kind is EntryKind.FOLDER:
                    self._folders[shown] = {}

    def _object(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return self._folders[folder][name][1]


def sizes_of(commands: Commands, names: Collection[str]) -> list[int]:
    """The length in bytes of each of these objects. Raises CommandFailedError for one that is not there."""
    lines = _asked(commands, "--batch-check=%(objectsize)", names).decode("utf-8", "replace").splitlines()
    wrong = next((line for line in lines if not line.isdigit()), None)
    if wrong is not None or len(lines) != len(names):
        raise CommandFailedError("cat-file", 0, f"fatal: {wrong or 'an answer is missing'}")
    return list(map(int, lines))


def contents_of(commands: Commands, names: Collection[str]) -> list[bytes]:
    """The content of each of these objects. The caller has checked their lengths before. Raises CommandFailedError."""
    output, at, contents = _asked(commands, "--batch=%(objectsize)", names), 0, []
    for _ in names:
        end = output.index(b"\n", at)
        if not output[at:end].isdigit():
            raise CommandFailedError("cat-file", 0, f"fatal: {output[at:end].decode('utf-8', 'replace')}")
        at = end + 1 + int(output[at:end])
        contents.append(output[end + 1 : at])
        at += 1
    return contents


def _asked(commands: Commands, mode: str, names: Collection[str]) -> bytes:
    return commands.run("cat-file", mode, feed="".join(f"{name}\n" for name in names).encode()) if names else b""
