"""Which files of a repository are manifests and templates: the configured path, and `.sourceignore`.

A tree that is too large is refused as a whole, since half a tree would look like a deletion of the other half.

Patterns in `.sourceignore` are gitignore's, without named classes such as `[[:alpha:]]`. Python's `fnmatch` compiles them. A star ends at
the first position where the rest matches, and is never tried again, so `*a*a*a*b` takes no longer than another pattern.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from reconciler.model.errors import Invalid, Stalled

IGNORE_FILE = ".sourceignore"
TEMPLATE_SUFFIX = ".j2"
SUFFIXES = (".yaml", ".yml", ".json", TEMPLATE_SUFFIX)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class EntryKind(Enum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SUBMODULE = "submodule"
    OTHER = "other"


class Tree(Protocol):
    """Files by path from the root of the repository; "" is the root itself."""

    def entries(self, folder: str) -> dict[str, EntryKind] | None:
        """The entries of a folder by name; None if there is no such folder."""

    def content(self, path: str) -> bytes:
        """A file's bytes. Raises OSError."""

    def size(self, path: str) -> int:
        """A file's length in bytes. Raises OSError."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """file_bytes: a larger file is left out. A tree that exceeds any of the others is refused. total_bytes, files: of what is read.
    entries: how many files, folders and links of any name may be visited. seconds: how long that may take."""

    file_bytes: int = 2**20
    total_bytes: int = 64 * 2**20
    files: int = 20_000
    entries: int = 250_000
    seconds: float = 60


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a repository that is read: manifests and templates below `folder`, and only templates below `templates`.

    Both are clean paths from the root. The folder `templates` need not exist; "" stands for none.
    """

    folder: str = ""
    templates: str = ""

    @classmethod
    def of(cls, folder: str, templates: str) -> Scope:
        """The scope of paths as people write them. Raises `Invalid` for one that leaves the repository."""
        return cls(clean_subdirectory(folder), clean_subdirectory(templates))

    @property
    def templates_apart(self) -> bool:
        """Whether the templates are outside the folder."""
        return bool(self.templates) and not f"{self.templates}/".startswith(f"{self.folder}/" if self.folder else "")


@dataclass(slots=True)
class SelectedFiles:
    """files: by path. skipped: (path, why)."""

    files: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def clean_subdirectory(subdirectory: str) -> str:
    """`./clusters/a/` → `clusters/a`. Raises `Invalid` for a path that leaves the repository."""
    parts = [part for part in subdirectory.split("/") if part not in {"", "."}]
    if ".." in parts or subdirectory.startswith("/"):
        raise Invalid(
            f"path {subdirectory!r} leaves the repository", hint="name a folder inside it, such as clusters/production"
        )
    return "/".join(parts)


def load(
    tree: Tree, selection: SelectedFiles, limits: TreeLimits
) -> tuple[dict[str, bytes], tuple[tuple[str, str], ...]]:
    """Contents by path, and the files left out with the reason. Raises `Stalled` for a tree that is too large."""
    files: dict[str, bytes] = {}
    skipped = list(selection.skipped)
    total = 0
    for path in selection.files:
        try:
            size = tree.size(path)
            if size > limits.file_bytes:
                skipped.append((path, f"it has {size:,} bytes; {limits.file_bytes:,} is the most a manifest may have"))
                continue
            total += size
            if total > limits.total_bytes:
                raise too_large(f"more than {limits.total_bytes} bytes of manifests")
            content = tree.content(path)
        except OSError as error:
            skipped.append((path, f"it cannot be read ({error.strerror or error})"))
            continue
        if content.startswith(_LFS_POINTER):
            skipped.append((path, "it is a Git LFS pointer; commit the file itself"))
            continue
        files[path] = content
    return files, tuple(sorted(skipped))


def too_large(what: str) -> Stalled:
    return Stalled(
        f"the repository has {what}",
        reason="TreeTooLarge",
        hint=f"name the folder to read with --path, or leave files out with a {IGNORE_FILE}",
    )


_ANY_FOLDERS = "**"
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line. segments: an expression for each part between slashes, None for `**`. leaves_out: False if the line begins with
    `!`. folders_only: whether it ends with a slash."""

    segments: tuple[re.Pattern[str] | None, ...]
    leaves_out: bool
    folders_only: bool

    def matches(self, parts: Sequence[str], *, folder: bool) -> bool:
        return (folder or not self.folders_only) and _fits(self.segments, parts)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of one file in order, without empty lines and comments."""
    rules = (_rule(line.removesuffix("\r")) for line in text.removeprefix("\ufeff").split("\n"))
    return tuple(rule for rule in rules if rule is not None)


def verdict(rules: Sequence[Rule], path: str, *, folder: bool) -> bool | None:
    """Whether the last rule that matches a path leaves it out; None if none matches. path: relative to the rules' folder."""
    parts = path.split("/")
    return next((rule.leaves_out for rule in reversed(rules) if rule.matches(parts, folder=folder)), None)


def _rule(line: str) -> Rule | None:
    line = _without_trailing_spaces(line)
    if not line or line.startswith("#"):
        return None
    leaves_out = not line.startswith("!")
    line = line.removeprefix("!")
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    if not line:
        return None
    anchored = "/" in line
    parts = [_ANY_FOLDERS if re.fullmatch(r"\*{2,}", part) else part for part in line.removeprefix("/").split("/")]
    if not anchored:
        parts = [_ANY_FOLDERS, *parts]
    if parts[-1] == _ANY_FOLDERS:
        parts.append("*")  # the content of a folder, not the folder itself
    segments = tuple(None if part == _ANY_FOLDERS else _expression(part) for part in parts)
    return Rule(segments, leaves_out, folders_only)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 and len(kept) < len(line) else kept


def _fits(segments: Sequence[re.Pattern[str] | None], parts: Sequence[str]) -> bool:
    """Whether segments match parts. A `**` matches no part at first, and one more after each mismatch of what follows."""
    at = part = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        if at < len(segments) and segments[at] is None:
            retry = (at, part)
            at += 1
        elif at < len(segments) and (expression := segments[at]) is not None and expression.fullmatch(parts[part]):
            at += 1
            part += 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            at, part = retry[0] + 1, retry[1]
        else:
            return False
    return at == len(segments)


def _expression(pattern: str) -> re.Pattern[str]:
    """The expression of one segment. A backslash makes the next letter plain; `[^a]` is `[!a]`."""
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)
    return re.compile(fnmatch.translate(plain.replace("[^", "[!")))
