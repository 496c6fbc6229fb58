"""Walking over a tree to find its manifests and templates, for folders and commits alike.

Links are followed only inside the repository. They are resolved component by component, so none is opened to find out where it leads.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from time import monotonic

from reconciler.manifests.documents.structure import nearest
from reconciler.model.errors import Stalled
from reconciler.source.selection import (
    IGNORE_FILE,
    SUFFIXES,
    TEMPLATE_SUFFIX,
    EntryKind,
    Rule,
    Scope,
    SelectedFiles,
    Tree,
    TreeLimits,
    parse_rules,
    too_large,
    verdict,
)

_MOST_LINKS = 40
"""The most links in a row, as in Linux."""
_DEEPEST = 64
_LONGEST_NAME = 255
"""The longest name in bytes, as on all common file systems. Git itself has no limit."""
_LONGEST_LINK = 4096
_LARGEST_IGNORE_FILE = 64 * 2**10
NO_FILE = "it is a pipe, a socket or a device"


def select(tree: Tree, scope: Scope, limits: TreeLimits) -> SelectedFiles:
    """The manifests and templates of a scope, in order of path.

    Other files, hidden files and folders are left out silently. So is what `.sourceignore` files name, each for its own folder, in
    gitignore's syntax. Raises `Stalled` if there is no such folder or the tree is too large.
    """
    return _Walk(tree, limits).run(scope)


class _RefusedLinkError(Exception):
    """A link that is not followed; its text is the reason."""


def _no_folder(subdirectory: str, near: str) -> Stalled:
    return Stalled(
        f"the repository has no folder {subdirectory!r}",
        reason="PathNotFound",
        hint=near or "name an existing folder with --path",
    )


_Rules = tuple[str, tuple[Rule, ...]]
"""The folder that the rules are for, and the rules."""


def _misspelt(suffix: str) -> set[str]:
    """The suffix with a letter doubled, two swapped, or one but the first dropped; and the suffix itself, for capitals."""
    letters = suffix.removeprefix(".")
    pairs = [(letters[:index], letters[index], letters[index + 1 :]) for index in range(len(letters))]
    doubled = {before + letter * 2 + after for before, letter, after in pairs}
    swapped = {before + after[0] + letter + after[1:] for before, letter, after in pairs if after}
    dropped = {before + after for before, _, after in pairs if before and len(letters) > 3}  # noqa: PLR2004 - two letters say little
    return {letters} | doubled | swapped | dropped


_MISSPELT = {word: suffix for suffix in (".json", ".yaml", ".yml") for word in _misspelt(suffix)}
"""A file with such a name would not be read, and what it declared would be deleted."""


class _Walk:
    def __init__(self, tree: Tree, limits: TreeLimits) -> None:
        self._tree = tree
        self._limits = limits
        self._found = SelectedFiles()
        self._suffixes: tuple[str, ...] = SUFFIXES
        self._entries = 0
        self._latest = monotonic() + limits.seconds

    def run(self, scope: Scope) -> SelectedFiles:
        if not self._below(scope.folder):
            raise _no_folder(scope.folder, self._near(scope.folder))
        if scope.templates_apart:
            self._suffixes = (TEMPLATE_SUFFIX,)
            self._below(scope.templates)
        self._found.files = dict(sorted(self._found.files.items()))
        self._found.skipped.sort()
        return self._found

    def _below(self, folder: str) -> bool:
        """Walks over a folder with the rules of its parents; False if there is no such folder."""
        try:
            real = self._resolve("", folder)
        except _RefusedLinkError:
            return False
        if self._tree.entries(real) is None:
            return False
        parts = folder.split("/") if folder else []
        above = ["/".join(parts[:count]) for count in range(len(parts))]
        rules = [rule for each in above for rule in self._rules(each, each)]
        self._folder(folder, real, rules, (real,))
        return True

    def _near(self, folder: str) -> str:
        """`did you mean "clusters/production"?`, by the first part of the path that does not exist."""
        there, parts = "", folder.split("/")
        for number, part in enumerate(parts):
            entries = self._tree.entries(there) or {}
            if entries.get(part) is not EntryKind.FOLDER:
                names = [name for name, kind in entries.items() if kind is EntryKind.FOLDER]
                rest = parts[number + 1 :]
                return nearest("/".join(parts), ("/".join((*parts[:number], name, *rest)) for name in names))
            there = "/".join(parts[: number + 1])
        return ""

    def _look_at(self, count: int) -> None:
        """Counts visited entries, since links can make a small tree endless."""
        self._entries += count
        if self._entries > self._limits.entries:
            raise too_large(f"more than {self._limits.entries:,} files and folders")
        if monotonic() > self._latest:
            raise too_large(f"more than can be looked through in {self._limits.seconds:g} seconds")

    def _folder(self, shown: str, real: str, rules: Sequence[_Rules], inside: tuple[str, ...]) -> None:
        rules = [*rules, *self._rules(shown, real)]
        for name, kind in sorted((self._tree.entries(real) or {}).items()):
            self._look_at(1)
            path, source = posixpath.join(shown, name), posixpath.join(real, name)
            if (
                name.startswith(".")
                or self._is_too_long(path, name)
                or _ignored(rules, path, folder=kind is EntryKind.FOLDER)
            ):
                continue
            if kind is EntryKind.LINK:
                try:
                    source = self._resolve(real, name)
                except _RefusedLinkError as error:
                    if name.endswith(self._suffixes) or "." not in name:
                        self._skip(path, f"it is a link that {error}")
                    continue
            match self._kind(source) if kind is EntryKind.LINK else kind:
                case EntryKind.FOLDER:
                    self._descend(path, source, rules, inside)
                case EntryKind.FILE:
                    self._file(path, source)
                case EntryKind.SUBMODULE:
                    self._skip(path, "it is a submodule; submodules are not followed")
                case EntryKind.OTHER if name.endswith(self._suffixes):
                    self._skip(path, NO_FILE)
                case _:
                    pass

    def _is_too_long(self, path: str, name: str) -> bool:
        if len(name) <= _LONGEST_NAME:
            return False
        if name.endswith(self._suffixes):
            shown = f"{path[: len(path) - len(name)]}{name[:40]}…"
            self._skip(shown, f"it has a name of more than {_LONGEST_NAME} characters")
        return True

    def _descend(self, path: str, source: str, rules: Sequence[_Rules], inside: tuple[str, ...]) -> None:
        if _ignored(rules, path, folder=True):
            return
        if source in inside:
            self._skip(path, "it is a link to a folder that it is in")
        elif self._tree.entries(source) is None:
            self._skip(path, "it cannot be listed")
        elif len(inside) > _DEEPEST:
            raise too_large(f"more than {_DEEPEST} folders in one another")
        else:
            self._folder(path, source, rules, (*inside, source))

    def _file(self, path: str, source: str) -> None:
        if not path.endswith(self._suffixes):
            _, dot, suffix = path.rpartition(".")
            meant = _MISSPELT.get(suffix.lower()) if dot else None
            if meant is not None and meant in self._suffixes:
                self._skip(path, f"its name ends in .{suffix}, which is nearly {meant}; rename it")
            return
        try:
            path.encode()
        except UnicodeEncodeError:
            self._skip(path, "it has a name that is not UTF-8")
            return
        self._found.files[path] = source
        if len(self._found.files) > self._limits.files:
            raise too_large(f"more than {self._limits.files} manifests")

    def _skip(self, path: str, why: str) -> None:
        self._found.skipped.append((path.encode("utf-8", "replace").decode(), why))

    def _rules(self, shown: str, real: str) -> list[_Rules]:
        kind = (self._tree.entries(real) or {}).get(IGNORE_FILE)
        path = posixpath.join(real, IGNORE_FILE)
        if kind is EntryKind.OTHER:
            raise _unreadable_rules(path, NO_FILE)
        if kind is not EntryKind.FILE:
            return []
        try:
            size = self._tree.size(path)
            text = self._tree.content(path).decode("utf-8", "surrogateescape") if size <= _LARGEST_IGNORE_FILE else ""
        except (OSError, ValueError) as error:
            # without its rules too much of the folder would be read, which is as wrong as too little
            raise _unreadable_rules(path, str(error)) from error
        if size > _LARGEST_IGNORE_FILE:
            raise _unreadable_rules(path, f"it is larger than {_LARGEST_IGNORE_FILE // 2**10} KiB")
        return [(shown, parse_rules(text))]

    def _kind(self, path: str) -> EntryKind | None:
        if not path:
            return EntryKind.FOLDER
        folder, name = posixpath.split(path)
        return (self._tree.entries(folder) or {}).get(name)

    def _resolve(self, folder: str, target: str) -> str:
        """The path with every link on the way resolved. Raises _RefusedLinkError."""
        where = folder.split("/") if folder else []
        ahead = target.split("/")[::-1]
        links = 0
        while ahead:
            part = ahead.pop()
            self._look_at(1)
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
            if kind is EntryKind.LINK:
                links += 1
                if links > _MOST_LINKS:
                    raise _RefusedLinkError("goes round in a circle")
                text = self._link("/".join(where))
                where.pop()
                ahead.extend(text.split("/")[::-1])
        return "/".join(where)

    def _link(self, path: str) -> str:
        try:
            if self._tree.size(path) > _LONGEST_LINK:
                raise _RefusedLinkError("is longer than a path can be")
            text = self._tree.content(path).decode("utf-8", "surrogateescape")
        except OSError as error:
            raise _RefusedLinkError(f"cannot be read ({error.strerror or error})") from error
        if text.startswith("/"):
            raise _RefusedLinkError("leads out of the repository")
        return text


def _unreadable_rules(path: str, why: str) -> Stalled:
    """The failure. The path is escaped, since folders may have control characters or invalid UTF-8 in their names."""
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in path)
    return Stalled(f"{shown} cannot be read: {why}", reason="SourceIgnoreInvalid")


def _ignored(rules: Sequence[_Rules], path: str, *, folder: bool) -> bool:
    """Whether the path is ignored. As in Git, the last matching rule of the deepest file decides."""
    for base, of_folder in reversed(rules):
        is_out = verdict(of_folder, path[len(base) :].lstrip("/"), folder=folder)
        if is_out is not None:
            return is_out
    return False
