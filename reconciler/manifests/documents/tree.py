"""From YAML events to plain values with marks: duplicate keys, merge keys, aliases, limits, and what scalars mean.

kubectl reads YAML with sigs.k8s.io/yaml, that is go-yaml v2, and sends JSON to the API server. So `yes`, `on` and `y` are
booleans, and `017`, `0o17` and `0x1F` are integers. `1e3` is the number 1000 (an integer in JSON), and `12:30` and dates are
strings. PyYAML's own resolver agrees only on the first of these, so the rules are written out here.

The events come from libyaml. Values are built here, because PyYAML's own composer and constructor lose positions, accept
duplicate keys and resolve scalars by YAML 1.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.manifests.documents.document import Marks
from reconciler.model import codes
from reconciler.model.findings import Code

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([+-]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])")
_LARGEST_PLAIN = 1e21
"""Go prints floats below this value without an exponent, so a whole one is an integer in JSON."""
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1
"""go-yaml's integers have 64 bits, signed or unsigned. A longer number is a float if it is decimal, otherwise text."""
_MOST_DIGITS = 80
"""More digits than 64 bits have in any base, and few enough for `int` to read quickly."""


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    return _number(text)


def key_text(value: Scalar) -> str:
    """A mapping key as in JSON: numbers and booleans become text. For None, which cannot be a key, the caller must raise."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _number(text: str) -> Scalar:
    # go-yaml removes every underscore of a number. If the number begins with a point, it removes only those between digits.
    plain = _BETWEEN_DIGITS.sub("", text) if text[0] == "." else text.replace("_", "")
    number = _integer(plain)
    if number is not None:
        return number
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        if value.is_integer() and abs(value) < _LARGEST_PLAIN:
            return int(value)
        return value if math.isfinite(value) else text
    return text


def _integer(text: str) -> int | None:
    """A 64-bit integer; None for any other text."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, bases = match[1], ((match[3], 16), (match[5], 2), (match[7], 8), (match[8], 10))
    digits, base = next((digits.lstrip("0"), base) for digits, base in bases if digits is not None)
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(f"{sign}{digits or 0}", base)
    return number if _SMALLEST_INTEGER <= number <= _LARGEST_INTEGER else None


DEEPEST = 64
"""The most levels of nesting. The kinds read here have about 15."""
MOST_NODES = 100_000
"""The most nodes of one document with its aliases resolved. A larger object would not fit into etcd."""
MOST_CHARACTERS = 2 * 2**20
"""The most characters of one document with its aliases resolved: more than the largest file has, and more than etcd takes."""
_NODE = 16
"""Characters that a value reached by an alias counts for beside its own, since each is copied."""
_TAGS_OF_NO_TEXT = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "binary"))
"""Manifests do without. With any other tag a scalar is text, as for kubectl."""
_MERGE = "tag:yaml.org,2002:merge"
_Entries = dict[str | int, tuple[int, int]]


class Unreadable(Exception):  # noqa: N818 - it never leaves this package, where it becomes a finding
    """Why one document is unreadable. line, column: from 1, in the file."""

    def __init__(self, code: Code, message: str, line: int, column: int, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Root:
    """One document's value, and the line and column, from 1, of its first node.

    surplus: roughly how many characters its aliases add to what is written.
    """

    value: Any
    line: int
    column: int
    surplus: int = 0


_TEMPLATE = "{{"
_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
_RENDER = "this is a Helm or Go template; commit what it renders to, or leave it out by .sourceignore"
_CHECK = "check indentation (spaces, never tabs), colons inside values (quote them) and unclosed quotes"


def documents_of(text: str, marks: Marks, first_line: int) -> Iterator[Root]:
    """The documents of one text in order, so that an error does not affect those before it. Raises `Unreadable`.

    marks: receives positions. first_line: the line of the file, from 0, on which the text begins.
    """
    import yaml

    try:
        yield from _TreeBuilder(yaml.CSafeLoader(text), marks, first_line).documents()
    except Unreadable as error:
        if error.code is codes.NOT_JSON and _TEMPLATE in text:
            code = codes.TEMPLATE_NOT_RENDERED
            raise Unreadable(code, error.message, error.line, error.column, _RENDER) from error
        raise
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + first_line + 1
        character = ord(error.character) if isinstance(error.character, str) else error.character
        message = f"character U+{character:04X} is not allowed in YAML"
        raise Unreadable(codes.YAML_SYNTAX, message, line, 1, "remove it") from error
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, first_line) from error


def _syntax_error(error: Any, text: str, first_line: int) -> Unreadable:
    """What libyaml says, or what is known to be meant by it."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    code, hint = codes.YAML_SYNTAX, _CHECK
    message = str(error.problem or "the text ends too early") + (f" ({error.context})" if error.context else "")
    if conflict := _CONFLICT.search(text):
        message, hint = (
            "Git left a merge conflict here",
            "choose one side, and remove the lines of <<<<<<<, ======= and >>>>>>>",
        )
        line, column = text.count("\n", 0, conflict.start()), 0
    elif _TEMPLATE in text:
        code, hint = codes.TEMPLATE_NOT_RENDERED, _RENDER
    elif mark and _is_tab(text, line, column):
        message, hint = "a tab where only spaces may be", "indent with spaces"
    return Unreadable(code, message, first_line + line + 1, column + 1, hint)


def _is_tab(text: str, line: int, column: int) -> bool:
    """Whether a tab stands there. YAML knows further line breaks, after which the lines of a text are others."""
    return any(there[column:].startswith("\t") for there in text.split("\n")[line : line + 1])


class _TreeBuilder:
    """Builds the documents of one text from libyaml's events."""

    def __init__(self, parser: Any, marks: Marks, first_line: int) -> None:
        self._parser = parser
        self._marks = marks
        self._first_line = first_line
        self._anchors: dict[str, tuple[Any, int, int, int]] = {}
        """By anchor: its value, number of nodes, height and number of characters."""
        self._open: set[str] = set()
        self._nodes = 0
        self._characters = 0
        self._surplus = 0
        self._deepest = 0

    def documents(self) -> Iterator[Root]:
        """The documents. Raises `Unreadable`, and PyYAML's errors, whose marks count from the start of the text."""
        import yaml

        parser = self._parser
        while parser.check_event():
            event = parser.get_event()
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            self._anchors.clear()
            self._nodes = self._characters = self._surplus = 0
            event = parser.get_event()
            line, column = self._place(event)
            value = self._node(event, 0)
            yield Root(value, line, column, self._surplus)

    def _place(self, event: Any) -> tuple[int, int]:
        mark = event.start_mark
        return mark.line + self._first_line + 1, mark.column + 1

    def _unreadable(self, event: Any, code: Code, message: str, hint: str = "") -> Unreadable:
        return Unreadable(code, message, *self._place(event), hint=hint)

    def _node(self, event: Any, depth: int) -> Any:
        name = type(event).__name__
        if name == "AliasEvent":
            return self._alias(event, depth)
        before, characters, deepest = self._nodes, self._characters, self._deepest
        self._deepest = depth
        # A long prefix of tags is an alias of its own.
        self._count(1, len(event.tag or "") + (len(event.value) if name == "ScalarEvent" else 0), event)
        anchor = event.anchor
        if anchor is not None:
            self._open.add(anchor)
        if name == "ScalarEvent":
            value: Any = self._scalar(event)
        elif depth >= DEEPEST:
            raise self._too_deep(event)
        elif name == "MappingStartEvent":
            value = self._mapping(depth)
        else:
            value = self._sequence(depth)
        if anchor is not None:
            self._open.discard(anchor)
            height = self._deepest - depth
            self._anchors[anchor] = (value, self._nodes - before, height, self._characters - characters)
        self._deepest = max(self._deepest, deepest)
        return value

    def _too_deep(self, event: Any) -> Unreadable:
        return self._unreadable(
            event,
            codes.NESTED_TOO_DEEP,
            f"more than {DEEPEST} levels of nesting",
            hint="no object of Kubernetes is nested like this; look for brackets that are never closed",
        )

    def _alias(self, event: Any, depth: int) -> Any:
        if event.anchor in self._open:
            raise self._unreadable(event, codes.TOO_MANY_ALIASES, f"alias *{event.anchor} contains itself")
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise self._unreadable(
                event,
                codes.YAML_SYNTAX,
                f"alias *{event.anchor} has no anchor",
                hint=f"put &{event.anchor} before the value it stands for, earlier in the same document",
            )
        value, nodes, height, characters = anchored
        self._count(nodes, characters, event)
        self._surplus += nodes * _NODE + characters
        if depth + height > DEEPEST:
            raise self._too_deep(event)
        self._deepest = max(self._deepest, depth + height)
        return value

    def _count(self, nodes: int, characters: int, event: Any) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes <= MOST_NODES and self._characters <= MOST_CHARACTERS:
            return
        for count, most, what in (
            (self._nodes, MOST_NODES, "values"),
            (self._characters, MOST_CHARACTERS, "characters"),
        ):
            if count > most:
                raise self._unreadable(
                    event,
                    codes.TOO_MANY_ALIASES,
                    f"the document has more than {most} {what} once its aliases are followed",
                    hint="write the values out, or split the document",
                )

    def _scalar(self, event: Any) -> Scalar:
        text: str = event.value
        if event.tag is None:
            value: Scalar = resolve_plain(text) if event.implicit[0] else text
        elif event.tag in _TAGS_OF_NO_TEXT:
            tag = f"!!{event.tag.rpartition(':')[2]}"
            raise self._unreadable(event, codes.YAML_SYNTAX, f"{tag} is not read", hint="remove the tag")
        else:
            value = text
        if isinstance(value, float) and not math.isfinite(value):
            raise self._unreadable(
                event,
                codes.NOT_JSON,
                f"{text} is not a number that JSON can represent",
                hint=f'write "{text}" in quotes if it is meant as text',
            )
        return value

    def _sequence(self, depth: int) -> list[Any]:
        values: list[Any] = []
        places: _Entries = {}
        while type(event := self._parser.get_event()).__name__ != "SequenceEndEvent":
            places[len(values)] = self._place(event)
            values.append(self._node(event, depth + 1))
        self._marks.put(values, places)
        return values

    def _mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        places: _Entries = {}
        written: dict[str, tuple[int, int]] = {}
        while type(event := self._parser.get_event()).__name__ != "MappingEndEvent":
            place = self._place(event)
            if type(event).__name__ == "ScalarEvent" and _is_merge(event):
                self._merge(values, places, depth, place)
                continue
            key = self._key(event, depth, place)
            if key in written:
                before, here = written[key][0], place[0]
                lines = f"on line {here}" if before == here else f"on line {before} and on line {here}"
                raise Unreadable(
                    codes.DUPLICATE_KEY,
                    f"{key!r} is given twice, {lines}",
                    *place,
                    hint="keep one of the two; other programs silently take the last",
                )
            written[key] = place
            places[key] = place
            values[key] = self._node(self._parser.get_event(), depth + 1)
        self._marks.put(values, places)
        return values

    def _key(self, event: Any, depth: int, place: tuple[int, int]) -> str:
        value = self._node(event, depth + 1)
        if value is None or isinstance(value, dict | list):
            raise Unreadable(
                codes.NOT_JSON,
                "a key must be text, not " + ("null" if value is None else "a mapping or a list"),
                *place,
                hint="quote the key; a value that begins with { must be quoted too",
            )
        return key_text(value)

    def _merge(self, values: dict[str, Any], places: _Entries, depth: int, place: tuple[int, int]) -> None:
        """Merges `<<` in the order of writing, as kubectl does. It overrides earlier keys; in a list the first mapping wins."""
        source = self._node(self._parser.get_event(), depth + 1)
        parts = source if isinstance(source, list) else [source]
        if not all(isinstance(part, dict) for part in parts):
            raise Unreadable(
                codes.YAML_SYNTAX, "<< must name a mapping or a list of mappings", *place, hint="write << : *anchor"
            )
        for part in reversed(parts):
            values.update(part)
            places.update(self._marks.of(part))


def _is_merge(event: Any) -> bool:
    return event.value == "<<" and (event.tag == _MERGE or (event.tag is None and bool(event.implicit[0])))
