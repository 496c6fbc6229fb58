"""Label selectors as one line of text (`app=web,tier in (a,b),!legacy`), the form of kubectl and of scales."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.model.errors import Invalid
from reconciler.model.requirements import LabelSelector, Operator, Requirement

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?P<key>(?:{_NAME}/)?{_NAME})"
_SET_BASED = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]+)\)", re.ASCII)
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==|!=|=)\s*(?P<value>.*)", re.ASCII)
_PRESENCE = re.compile(rf"(?P<absent>!?)\s*{_KEY}", re.ASCII)
_VALUE = re.compile(rf"(?:{_NAME})?", re.ASCII)
_PART = re.compile(r"(?:[^,()]|\([^()]*+\))*")
_LONGEST_VALUE = 63
_MOST_SHOWN = 60


def parse_selector(text: str) -> LabelSelector:
    """The selector that the text says, as apimachinery's labels.Parse reads it, without its comparisons `>` and `<`. Raises `Invalid`."""
    return LabelSelector(expressions=tuple(_requirement(part.strip()) for part in _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas that are in no parentheses."""
    position = 0
    while match := _PART.match(text, position):
        yield match[0]
        position = match.end()
        if position == len(text):
            return
        if text[position] != ",":  # a parenthesis that has no other
            break
        position += 1
    raise _refused(text)


def _requirement(part: str) -> Requirement:
    if match := _SET_BASED.fullmatch(part):
        operator = Operator.IN if match["operator"] == "in" else Operator.NOT_IN
        return Requirement(match["key"], operator, _values(part, *match["values"].split(",")))
    if match := _EQUALITY.fullmatch(part):
        operator = Operator.NOT_IN if match["operator"] == "!=" else Operator.IN
        return Requirement(match["key"], operator, _values(part, match["value"]))
    if match := _PRESENCE.fullmatch(part):
        return Requirement(match["key"], Operator.DOES_NOT_EXIST if match["absent"] else Operator.EXISTS)
    raise _refused(part)


def _values(part: str, *written: str) -> tuple[str, ...]:
    values = tuple(sorted(value.strip() for value in written))
    if any(len(value) > _LONGEST_VALUE or _VALUE.fullmatch(value) is None for value in values):
        raise _refused(part)
    return values


def _refused(text: str) -> Invalid:
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    message = f"{shown!r} is no part of a label selector"
    return Invalid(message, hint="write parts such as app=web, tier in (a,b), !legacy, with commas between")
