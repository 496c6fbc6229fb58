"""Makes users' text harmless for its destination: terminals, where it wraps lines too, Markdown, GitHub workflow commands, XML, JSON.
Masks values.

File names, field names and values come from anybody who can open a pull request. Control codes, changes of text direction, line
breaks and markup could act on the destination. So they are replaced by a visible form. Pod templates often have passwords in `env`, and many
people read a comment on a pull request. So whatever looks like a secret is masked, and so are the values of environment variables.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO

from reconciler.model.redaction import MASK, redacted

Paint = Callable[[str, str], str]
"""Gets a style (bold, dim, red, green, yellow, cyan) and a text; returns the coloured text, or the same text without colour."""
MOST_ROWS = 40
"""The most rows of one kind, about a terminal page. The JSON output has all of them."""
LEAST = 24
"""The least number of columns. Narrower lines would hold one word each."""
_FURTHER = 4
_ANY_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def takes_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether what people read there may have colours."""
    return stream.isatty() and "NO_COLOR" not in environment and environment.get("TERM") != "dumb"


def plain(_style: str, text: str) -> str:
    """The text without colour."""
    return text


def wrapped(line: str, width: int | None) -> Iterator[str]:
    """The line in pieces of at most `width` columns (None: not wrapped), all but the first indented. A word is never cut."""
    if width is None or _columns(line) <= width:
        yield line
        return
    width = max(width, LEAST)
    words = line.lstrip(" ").split(" ")
    indent = len(line) - len(line.lstrip(" "))
    piece = " " * indent + words[0]
    for word in words[1:]:
        if _columns(piece) + 1 + _columns(word) > width:
            yield piece.rstrip(" ")
            piece = " " * (indent + _FURTHER) + word
        else:
            piece += f" {word}"
    yield piece


def _columns(text: str) -> int:
    return len(_ANY_COLOUR.sub("", text))


if TYPE_CHECKING:  # every command starts with this file, and most need no plan
    from reconciler.model.changes import FieldChange

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})
"""Unicode categories: controls, formats (among them those that reverse text), surrogates, line separators, no character."""
_COLOUR = re.compile(r"(\x1b\[(?:0|1|2|3[0-7])m)")
"""The colour codes that commands write."""
_RUNNER_COMMAND = re.compile(r"^(\s*)::|##\[")
"""What the GitHub Actions runner interprets as a command in a job's output."""
_NOT_PLAIN = re.compile(r"[^\n -~]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
_BLOCK = re.compile(r"^(?:[-+](?=\s|$)|#{1,6}(?=\s|$)|>|\d{1,9}(?=[.)](?:\s|$))|([-=_~])(?=\s*\1\s*\1))")
"""The start of a list, a heading, a quotation, a rule or a fence on a Markdown line."""
_EMPHASIS = re.compile(r"(?<!\s)[*~]|[*~](?!\s|$)|(?<![^\W_])_|_(?![^\W_])")
"""Stars and tildes beside text, underscores that are not inside a word."""


_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<rest>[^\s'\"<>]+)", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;]+)=[^&;]*")
_OF_ENV = re.compile(r"(?:^|\.)env\[\d+\]\.value$")
_VARIABLE = re.compile(r"(?:^|\.)env\[\d+\]$")
_STEP = re.compile(r"[^.\[\]']+")
"""The steps of a path; the last is the name of the value."""


def without_url_secrets(text: str) -> str:
    """The text with the user information of each URL removed, and the value of each query parameter as `***`."""
    return _URL.sub(_shown_url, text) if "://" in text else text


def _shown_url(found: re.Match[str]) -> str:
    place, question, query = found["rest"].partition("?")
    host, slash, path = place.partition("/")
    return found["scheme"] + host.rpartition("@")[2] + slash + path + _PARAMETER.sub(r"\1=***", question + query)


def visible(text: str, *, keep: str = "") -> str:
    r"""The text with each invisible character as `\n`, `\x1b` or `\u202e`. keep: characters that stay."""
    if text.isprintable():
        return text
    return "".join(
        character if character in keep or unicodedata.category(character) not in _INVISIBLE else _shown(character)
        for character in text
    )


@lru_cache(maxsize=1024)
def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """The text on one line: runs of white space become one space, other invisible characters a visible form."""
    return visible(" ".join(text.split()))


def terminal(text: str) -> str:
    """One line, or a part of one, for a terminal or a log."""
    return _RUNNER_COMMAND.sub(_broken, visible(text))


def _broken(command: re.Match[str]) -> str:
    return f"{command[1]}\\x3a:" if command[0].endswith("::") else "#\\x23["


def terminal_lines(lines: Iterable[str], paint: Paint = plain, width: int | None = None) -> str:
    """The lines, each with its line break.

    paint: what coloured them; without colour no code is kept. width: the columns to wrap at.
    """
    shown = (_terminal_line(line, coloured=paint is not plain) for line in lines)
    return "".join(f"{piece}\n" for line in shown for piece in wrapped(line, width))


def _terminal_line(line: str, *, coloured: bool) -> str:
    if line.isprintable() and "::" not in line and "##[" not in line:
        return line
    # Every other part is a colour.
    pieces = _COLOUR.split(line) if coloured else [line]
    parts = [part if index % 2 else visible(part) for index, part in enumerate(pieces)]
    return _RUNNER_COMMAND.sub(_broken, "".join(parts))


def markdown_text(value: object) -> str:
    """Running text or a table cell, on one line, with markup, links, mentions and tags disabled."""
    text = visible(" ".join(str(value).split()))
    text = text.replace("\\", "\\\\") if "\\" in text else text
    text = _EMPHASIS.sub(lambda found: f"\\{found[0]}", text)
    block = _BLOCK.match(text)
    if block is not None:
        at = block.end() if block[0].isdigit() else 0
        text = f"{text[:at]}\\{text[at:]}"
    for character, escaped in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        ("|", "\\|"),
        ("[", "\\["),
        ("`", "\\`"),
        ("@", "@\u200b"),
        ("://", ":\u200b//"),
        ("www.", "www\u200b."),
    ):
        text = text.replace(character, escaped)
    return text


def markdown_code(value: object) -> str:
    """A code span, delimited by more backticks than the text has in sequence."""
    text = one_line(str(value)) or " "
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_fenced(value: object) -> str:
    """A line inside a fenced block, whose backticks cannot close the block."""
    return one_line(str(value)).replace("`", "'")


def page_value(value: object) -> object:
    """Any value of a page, with invisible characters made visible. Line breaks are kept, and so are the zero-width spaces of
    `markdown_text`. The template engine escapes markup."""
    return visible(value, keep="\n\t\u200b") if type(value) is str else value


PAGE_FILTERS: Mapping[str, Callable[[object], str]] = {
    "cell": markdown_text,
    "code": markdown_code,
    "fenced": markdown_fenced,
}
"""Filters for the Markdown templates, by name."""


def workflow_data(text: str) -> str:
    """The message of a GitHub workflow command. Line breaks are kept, as the runner encodes them."""
    return visible(text, keep="\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """A property of a GitHub workflow command, such as a file name."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def sarif_text(text: str) -> str:
    """A SARIF message: viewers make a link of `[words](address)`."""
    return visible(text, keep="\n").replace("](", "] (")


def uri_path(path: str) -> str:
    """A path as a relative URI (RFC 3986): every other octet than an unreserved one is percent-encoded."""
    octets = path.encode(errors="surrogatepass")
    return "".join(chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in octets)


def xml_text(text: str) -> str:
    """Text between XML tags."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def json_text(document: str) -> str:
    """A JSON document with invisible characters as JSON escapes: the same document, and safe to print."""
    return _NOT_PLAIN.sub(lambda found: _json_character(found[0]), document)


@lru_cache(maxsize=1024)
def _json_character(character: str) -> str:
    return json.dumps(character)[1:-1] if unicodedata.category(character) in _INVISIBLE else character


def masked_changes(changes: Iterable[FieldChange]) -> tuple[FieldChange, ...]:
    """The changes as they may be shown. A changed secret is shown as changed, without its value."""
    return tuple(map(_masked, changes))


def _masked(change: FieldChange) -> FieldChange:
    before, after = (_without_secrets(value, change.path) for value in (change.before, change.after))
    if before == after and change.before != change.after:
        before, after = f"{MASK} (before)", f"{MASK} (after)"
    return replace(change, before=before, after=after)


def _without_secrets(value: Any, path: str) -> Any:
    if value is None:
        return None
    if _OF_ENV.search(path):
        return MASK
    if _VARIABLE.search(path):
        value = _variable(value)
    name = next(reversed(_STEP.findall(path)), "")
    return redacted(_without_env(value, name), name)


def _without_env(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _without_env(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = [_without_env(item) for item in value]
        return [_variable(item) for item in items] if name == "env" else items
    return value


def _variable(item: Any) -> Any:
    return {**item, "value": MASK} if isinstance(item, Mapping) and "value" in item else item


def to_json(document: Mapping[str, Any]) -> str:
    """The document as printed: two spaces a level, keys in the contract's order, a newline at the end."""
    import msgspec

    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except (OverflowError, UnicodeEncodeError):  # a number beyond 64 bits, or a file's name that is not UTF-8
        text = json.dumps(document, indent=2, ensure_ascii=False)
    return json_text(text) + "\n"


def members(item: object, *names: str) -> dict[str, Any]:
    """Attributes as members of a JSON object: `next_value` is named `nextValue`. Times are RFC 3339. Of None every member is null."""
    return {_camel(name): None if item is None else _json_value(getattr(item, name)) for name in names}


@lru_cache(maxsize=1024)
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, StrEnum) else value


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`; fractions of a second only where there are any."""
    return f"{moment.astimezone(UTC).isoformat()[:-6]}Z"
