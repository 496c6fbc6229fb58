"""Which files of a tree are manifests to read, and reading them. Used by worktree and by objects, for folders and commits alike.

Links are followed only inside the repository, component by component, so that none is ever opened to find out where it
leads. A tree that is too large is refused as a whole: half a tree would look like a deletion of the other half.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from pathspec import GitIgnoreSpec

from reconciler.model.errors import Invalid, Stalled

IGNORE_FILE = ".sourceignore"
SUFFIXES = (".yaml", ".yml", ".json", ".j2")
_MOST_LINKS = 40
"""As many links in a row as Linux follows."""
_DEEPEST = 64
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class Kind(Enum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SUBMODULE = "submodule"
    OTHER = "other"


class Tree(Protocol):
    """Files by path from the root of the repository; "" is the root itself."""

    def entries(self, folder: str) -> dict[str, Kind] | None:
        """What a folder holds by name, None when there is no such folder."""

    def content(self, path: str) -> bytes:
        """A file's bytes, or the text of a link. Raises OSError."""

    def size(self, path: str) -> int:
        """A file's length in bytes. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Limits:
    """file_bytes: a larger file is left out; total_bytes and files: a larger tree is refused."""

    file_bytes: int = 2**20
    total_bytes: int = 64 * 2**20
    files: int = 20_000


@dataclass(slots=True)
class Selection:
    """files: path as shown → path of the real file (they differ where a link was followed); skipped: (path, why)."""

    files: dict[str, str] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)


class _RefusedLinkError(Exception):
    """A link that is not followed; its text is the reason."""


def clean_subdirectory(subdirectory: str) -> str:
    """`./clusters/a/` → `clusters/a`. Raises `Invalid` for a path that leaves the repository."""
    parts = [part for part in subdirectory.split("/") if part not in {"", "."}]
    if ".." in parts or subdirectory.startswith("/"):
        raise Invalid(
            f"path {subdirectory!r} leaves the repository", hint="name a folder inside it, such as clusters/production"
        )
    return "/".join(parts)


def select(tree: Tree, subdirectory: str, limits: Limits) -> Selection:
    """The manifests and templates under a clean subdirectory, in order of path.

    Left out without a word: other files, hidden files and folders, and what `.sourceignore` files name, each for its own
    folder, in gitignore's syntax. Raises `Stalled` when there is no such folder or the tree is too large.
    """
    return _Walk(tree, limits).run(subdirectory)


def load(tree: Tree, selection: Selection, limits: Limits) -> tuple[dict[str, bytes], tuple[tuple[str, str], ...]]:
    """Contents by path as shown, and everything that was left out for cause. Raises `Stalled` for a tree too large."""
    files: dict[str, bytes] = {}
    skipped = list(selection.skipped)
    total = 0
    for path, real in selection.files.items():
        try:
            size = tree.size(real)
            if size > limits.file_bytes:
                skipped.append((path, f"has {size} bytes; {limits.file_bytes} is the most a manifest may have"))
                continue
            content = tree.content(real)
        except OSError as error:
            skipped.append((path, f"cannot be read ({error.strerror or error})"))
            continue
        if content.startswith(_LFS_POINTER):
            skipped.append((path, "is a Git LFS pointer; commit the file itself"))
            continue
        total += len(content)
        if total > limits.total_bytes:
            raise _too_large(f"more than {limits.total_bytes} bytes of manifests")
        files[path] = content
    return files, tuple(sorted(skipped))


def _too_large(what: str) -> Stalled:
    return Stalled(
        f"the repository has {what}",
        reason="TreeTooLarge",
        hint=f"name the folder to read with --path, or leave files out with a {IGNORE_FILE}",
    )


def _no_folder(subdirectory: str) -> Stalled:
    return Stalled(
        f"the repository has no folder {subdirectory!r}",
        reason="PathNotFound",
        hint="name a folder that is there with --path",
    )


class _Walk:
    def __init__(self, tree: Tree, limits: Limits) -> None:
        self._tree = tree
        self._limits = limits
        self._found = Selection()

    def run(self, subdirectory: str) -> Selection:
        try:
            real = self._resolve("", subdirectory)
        except _RefusedLinkError as error:
            raise _no_folder(subdirectory) from error
        if self._tree.entries(real) is None:
            raise _no_folder(subdirectory)
        parts = subdirectory.split("/") if subdirectory else []
        above = ["/".join(parts[:count]) for count in range(len(parts))]
        rules = [rule for folder in above for rule in self._rules(folder, folder)]
        self._folder(subdirectory, real, rules, (real,))
        self._found.files = dict(sorted(self._found.files.items()))
        self._found.skipped.sort()
        return self._found

    def _folder(
        self, shown: str, real: str, rules: Sequence[tuple[str, GitIgnoreSpec]], inside: tuple[str, ...]
    ) -> None:
        rules = [*rules, *self._rules(shown, real)]
        for name, kind in sorted((self._tree.entries(real) or {}).items()):
            path, source = posixpath.join(shown, name), posixpath.join(real, name)
            if name.startswith(".") or _ignored(rules, path, folder=kind is Kind.FOLDER):
                continue
            if kind is Kind.LINK:
                try:
                    source = self._resolve(real, name)
                except _RefusedLinkError as error:
                    if name.endswith(SUFFIXES) or "." not in name:
                        self._skip(path, str(error))
                    continue
            match self._kind(source) if kind is Kind.LINK else kind:
                case Kind.FOLDER:
                    self._descend(path, source, rules, inside)
                case Kind.FILE:
                    self._file(path, source)
                case Kind.SUBMODULE:
                    self._skip(path, "is a submodule; submodules are not followed")
                case _:
                    pass

    def _descend(
        self, path: str, source: str, rules: Sequence[tuple[str, GitIgnoreSpec]], inside: tuple[str, ...]
    ) -> None:
        if _ignored(rules, path, folder=True):
            return
        if source in inside:
            self._skip(path, "is a link to a folder that it is in")
        elif self._tree.entries(source) is None:
            self._skip(path, "cannot be listed")
        elif len(inside) > _DEEPEST:
            raise _too_large(f"more than {_DEEPEST} folders in one another")
        else:
            self._folder(path, source, rules, (*inside, source))

    def _file(self, path: str, source: str) -> None:
        if not path.endswith(SUFFIXES):
            return
        try:
            path.encode()
        except UnicodeEncodeError:
            self._skip(path.encode("utf-8", "replace").decode(), "has a name that is not UTF-8")
            return
        self._found.files[path] = source
        if len(self._found.files) > self._limits.files:
            raise _too_large(f"more than {self._limits.files} manifests")

    def _skip(self, path: str, why: str) -> None:
        self._found.skipped.append((path, why))

    def _rules(self, shown: str, real: str) -> list[tuple[str, GitIgnoreSpec]]:
        if (self._tree.entries(real) or {}).get(IGNORE_FILE) is not Kind.FILE:
            return []
        path = posixpath.join(real, IGNORE_FILE)
        try:
            lines = self._tree.content(path).decode("utf-8", "replace").splitlines()
            return [(shown, GitIgnoreSpec.from_lines(lines))]
        except (OSError, ValueError) as error:
            # without its rules the folder would be read too widely, which is no better than too narrowly
            raise Stalled(f"{path} cannot be read: {error}", reason="SourceIgnoreInvalid") from error

    def _kind(self, path: str) -> Kind | None:
        if not path:
            return Kind.FOLDER
        folder, name = posixpath.split(path)
        return (self._tree.entries(folder) or {}).get(name)

    def _resolve(self, folder: str, target: str) -> str:
        """Where a path leads, every link on the way followed. Raises _RefusedLinkError."""
        where = folder.split("/") if folder else []
        ahead = target.split("/")[::-1]
        links = 0
        while ahead:
            part = ahead.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                if not where:
                    raise _RefusedLinkError("leads out of the repository")
                where.pop()
                continue
            where.append(part)
            kind = self._kind("/".join(where))
            if part == ".git":
                raise _RefusedLinkError("leads into .git")
            if kind is None:
                raise _RefusedLinkError("leads to nothing")
            if kind is Kind.LINK:
                links += 1
                if links > _MOST_LINKS:
                    raise _RefusedLinkError("goes round in a circle")
                text = self._link("/".join(where))
                where.pop()
                ahead.extend(text.split("/")[::-1])
        return "/".join(where)

    def _link(self, path: str) -> str:
        try:
            text = self._tree.content(path).decode("utf-8", "surrogateescape")
        except OSError as error:
            raise _RefusedLinkError(f"cannot be read ({error.strerror or error})") from error
        if text.startswith("/"):
            raise _RefusedLinkError("leads out of the repository")
        return text


def _ignored(rules: Sequence[tuple[str, GitIgnoreSpec]], path: str, *, folder: bool) -> bool:
    """The last rule that names the path decides, the deepest file's last of all, as Git has it."""
    verdict = False
    for base, spec in rules:
        name = path[len(base) :].lstrip("/") + ("/" if folder else "")
        result = spec.check_file(name).include
        verdict = verdict if result is None else result
    return verdict
