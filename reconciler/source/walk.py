"""Walking over a tree to find its manifests and templates, for folders and commits alike. Links are not followed."""

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

_DEEPEST = 64
_LONGEST_NAME = 255
"""The longest name in bytes, as on all common file systems. Git itself has no limit."""
_LARGEST_IGNORE_FILE = 64 * 2**10
_NO_FILE = "it is a pipe, a socket or a device"
_NOT_READ = {
    EntryKind.SUBMODULE: "it is a submodule; submodules are not followed",
    EntryKind.LINK: "it is a link; links are not followed",
    EntryKind.OTHER: _NO_FILE,
}


def select(tree: Tree, scope: Scope, limits: TreeLimits) -> SelectedFiles:
    """The manifests and templates of a scope, in order of path.

    Other files, hidden files and folders are left out silently. So is what `.sourceignore` files name, each for its own folder, in
    gitignore's syntax. Raises `Stalled` if there is no such folder or the tree is too large.
    """
    return _Walk(tree, limits).run(scope)


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
            hint = self._near(scope.folder) or "name an existing folder with --path"
            raise Stalled(f"the repository has no folder {scope.folder!r}", reason="PathNotFound", hint=hint)
        if scope.templates_apart:
            self._suffixes = (TEMPLATE_SUFFIX,)
            self._below(scope.templates)
        self._found.files.sort()
        self._found.skipped.sort()
        return self._found

    def _below(self, folder: str) -> bool:
        """Walks over a folder with the rules of its parents; False if there is no such folder."""
        rules: list[_Rules] = []
        at = ""
        for part in filter(None, folder.split("/")):
            if (self._tree.entries(at) or {}).get(part) is not EntryKind.FOLDER:
                return False
            rules += self._rules(at)
            at = posixpath.join(at, part)
        if self._tree.entries(at) is None:
            return False
        self._folder(at, rules)
        return True

    def _near(self, folder: str) -> str:
        """`did you mean "clusters/production"?`, by the first part of the path that does not exist; or why that part is not read."""
        there, parts = "", folder.split("/")
        for number, part in enumerate(parts):
            entries = self._tree.entries(there) or {}
            why = _NOT_READ.get(entries.get(part, EntryKind.FILE))
            if why is not None:
                return f"{posixpath.join(there, part)}: {why}"
            if entries.get(part) is not EntryKind.FOLDER:
                names = [name for name, kind in entries.items() if kind is EntryKind.FOLDER]
                return nearest(folder, ("/".join((*parts[:number], name, *parts[number + 1 :])) for name in names))
            there = "/".join(parts[: number + 1])
        return ""

    def _folder(self, folder: str, rules: Sequence[_Rules]) -> None:
        entries = self._tree.entries(folder)
        if entries is None:
            self._skip(folder, "it cannot be listed")
            return
        if folder.count("/") > _DEEPEST:
            raise too_large(f"more than {_DEEPEST} folders in one another")
        rules = [*rules, *self._rules(folder)]
        for name, kind in sorted(entries.items()):
            self._count()
            path = posixpath.join(folder, name)
            if name.startswith(".") or _ignored(rules, path, folder=kind is EntryKind.FOLDER):
                continue
            if len(name) > _LONGEST_NAME:
                if name.endswith(self._suffixes):
                    shown = posixpath.join(folder, f"{name[:40]}…")
                    self._skip(shown, f"it has a name of more than {_LONGEST_NAME} characters")
            elif kind is EntryKind.FOLDER:
                self._folder(path, rules)
            elif kind is EntryKind.FILE:
                self._file(path)
            elif (
                kind is EntryKind.SUBMODULE
                or name.endswith(self._suffixes)
                or (kind is EntryKind.LINK and "." not in name)
            ):
                self._skip(path, _NOT_READ[kind])

    def _count(self) -> None:
        """Counts an entry that is visited, since one folder in a commit may stand at many paths."""
        self._entries += 1
        if self._entries > self._limits.entries:
            raise too_large(f"more than {self._limits.entries:,} files and folders")
        if monotonic() > self._latest:
            raise too_large(f"more than can be looked through in {self._limits.seconds:g} seconds")

    def _file(self, path: str) -> None:
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
        self._found.files.append(path)
        if len(self._found.files) > self._limits.files:
            raise too_large(f"more than {self._limits.files} manifests")

    def _skip(self, path: str, why: str) -> None:
        self._found.skipped.append((path.encode("utf-8", "replace").decode(), why))

    def _rules(self, folder: str) -> list[_Rules]:
        kind = (self._tree.entries(folder) or {}).get(IGNORE_FILE)
        path = posixpath.join(folder, IGNORE_FILE)
        if kind is EntryKind.OTHER:
            raise _unreadable_rules(path, _NO_FILE)
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
        return [(folder, parse_rules(text))]


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
