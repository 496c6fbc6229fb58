"""Label selectors as one line of text (`app=web,tier in (a,b),!legacy`), the form of kubectl and of scales."""

from __future__ import annotations

import re

from reconciler.model.errors import Invalid
from reconciler.model.requirements import LabelSelector, Operator, Requirement

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?P<key>(?:{_NAME}/)?{_NAME})"
_SET_BASED = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]+)\)", re.ASCII)
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==|!=|=)\s*(?P<value>.*)", re.ASCII)
_PRESENCE = re.compile(rf"(?P<absent>!?)\s*{_KEY}", re.ASCII)
_VALUE = re.compile(rf"(?:{_NAME})?", re.ASCII)
_COMMA_OUTSIDE = re.compile(r",(?![^(]*\))")
_LONGEST_VALUE = 63
_LONGEST_SELECTOR = 10_000
"""In characters; nobody writes so much, and the parts are looked for in all of it."""


def parse_selector(text: str) -> LabelSelector:
    """The selector that the text says, as apimachinery's labels.Parse reads it, without its comparisons `>` and `<`. Raises `Invalid`."""
    if len(text) > _LONGEST_SELECTOR:
        raise _refused(f"a selector of {len(text):,} characters")
    return LabelSelector(expressions=tuple(_requirement(part.strip()) for part in _COMMA_OUTSIDE.split(text)))


def _requirement(part: str) -> Requirement:
    if match := _SET_BASED.fullmatch(part):
        operator = Operator.IN if match["operator"] == "in" else Operator.NOT_IN
        return Requirement(match["key"], operator, _values(part, *match["values"].split(",")))
    if match := _EQUALITY.fullmatch(part):
        operator = Operator.NOT_IN if match["operator"] == "!=" else Operator.IN
        return Requirement(match["key"], operator, _values(part, match["value"]))
    if match := _PRESENCE.fullmatch(part):
        return Requirement(match["key"], Operator.DOES_NOT_EXIST if match["absent"] else Operator.EXISTS)
    raise _refused(repr(part))


def _values(part: str, *written: str) -> tuple[str, ...]:
    values = tuple(sorted(value.strip() for value in written))
    if any(len(value) > _LONGEST_VALUE or _VALUE.fullmatch(value) is None for value in values):
        raise _refused(repr(part))
    return values


def _refused(what: str) -> Invalid:
    return Invalid(
        f"{what} selects no labels", hint="write parts such as app=web, tier in (a,b), !legacy, with commas between"
    )
