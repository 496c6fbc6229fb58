"""Which paths a `.sourceignore` file leaves out, in gitignore's syntax and in time linear in the length of a name.

The usual translation to one regular expression backtracks: `*a*a*a*a*a*b` takes minutes on a long name. Here a star ends at the
first position where the rest matches, and is never tried again. Such patterns lose no match by that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ANY_FOLDERS = "**"
_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\v\\f\\r", "upper": "A-Z", "xdigit": "0-9a-fA-F",
}  # fmt: skip
_NEVER = re.compile(r"(?!)")


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
    parts = [_ANY_FOLDERS if re.fullmatch(r"\*{2,}", part) else part for part in _parts(line.removeprefix("/"))]
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


def _parts(pattern: str) -> list[str]:
    """The parts between slashes. A slash in brackets is one of their letters; one after a backslash still separates."""
    parts: list[str] = []
    begin = index = 0
    while index < len(pattern):
        letter = pattern[index]
        index += 1
        if letter == "[":
            found = _bracket(pattern, index)
            index = index if found is None else found[1]
        elif letter == "\\" and pattern[index : index + 1] != "/":
            index += 1
        elif letter in "\\/":
            parts.append(pattern[begin : index - 1])
            index += letter == "\\"
            begin = index
    return [*parts, pattern[begin:]]


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
    """The expression of one segment. Stars separate pieces of fixed length; each but the last matches at its first position."""
    chunks: list[str] = [""]
    index = 0
    while index < len(pattern):
        letter = pattern[index]
        index += 1
        if letter == "*":
            chunks.append("")
        elif letter == "?":
            chunks[-1] += "."
        elif letter == "[":
            found = _bracket(pattern, index)
            if found is None:
                return _NEVER
            text, index = found
            chunks[-1] += text
        elif letter == "\\":
            if index == len(pattern):
                return _NEVER
            chunks[-1] += re.escape(pattern[index])
            index += 1
        else:
            chunks[-1] += re.escape(letter)
    first, *others = chunks
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{chunk})" for chunk in others[:-1] if chunk)
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def _bracket(pattern: str, index: int) -> tuple[str, int] | None:
    """The expression of `[…]`, and the index after it; None if it is never closed. index: where its inside begins."""
    negated = pattern[index : index + 1] in {"!", "^"}
    index += negated
    begin = index
    members: list[str] = []
    while index < len(pattern) and (index == begin or pattern[index] != "]"):
        found = _named_class(pattern, index) or _range(pattern, index)
        if found is None:
            return None
        members.append(found[0])
        index = found[1]
    if index >= len(pattern):
        return None
    inside = "".join(members)
    if not inside:
        return ("." if negated else "(?!)"), index + 1
    return f"[{'^' if negated else ''}{inside}]", index + 1


def _named_class(pattern: str, index: int) -> tuple[str, int] | None:
    """The expression of `[:alpha:]` at an index, and the index after it. An unknown name has no members."""
    if not pattern.startswith("[:", index):
        return None
    end = pattern.find(":]", index + 2)
    return None if end < 0 else (_CLASSES.get(pattern[index + 2 : end], ""), end + 2)


def _range(pattern: str, index: int) -> tuple[str, int] | None:
    """The expression of a letter or `a-z` at an index, and the index after it; None if the pattern ends within it."""
    low, index = _member(pattern, index)
    if low is None:
        return None
    if pattern[index : index + 1] != "-" or pattern[index + 1 : index + 2] in {"", "]"}:
        return re.escape(low), index
    high, index = _member(pattern, index + 1)
    if high is None:
        return None
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), index


def _member(pattern: str, index: int) -> tuple[str | None, int]:
    if pattern[index] == "\\":
        index += 1
    return (pattern[index] if index < len(pattern) else None), index + 1
