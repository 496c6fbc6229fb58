"""The calendar fields of a schedule's start and end: numbers, names and lists of them.

The Karpenter design "Scheduled Capacity" avoids the syntax of crontabs, so it allows lists only. A range, a step or a wildcard is
refused, with a hint that shows the equivalent list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.structure import nearest
from reconciler.model.findings import Code
from reconciler.model.schedules import TimePattern

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BOUNDS: dict[str, tuple[int, int]] = {
    "minutes": (0, 59),
    "hours": (0, 23),
    "days": (1, 31),
    "months": (1, 12),
    "weekdays": (0, 6),
}
_NAMES: dict[str, tuple[str, ...]] = {"months": _MONTHS, "weekdays": _WEEKDAYS}
_OFFSETS = {"months": 1, "weekdays": 0}
_RANGE = re.compile(r"(\*|[A-Za-z0-9]{1,9}(?:\s*-\s*[A-Za-z0-9]{1,9})?)(?:/([0-9]{1,4}))?")
_MOST_CHARACTERS = 500
"""The longest field. The numbers of all minutes take less."""
FIELDS = tuple(_BOUNDS)


class BadField(ValueError):  # noqa: N818 - it never leaves this package, where it becomes a finding
    """A calendar field that cannot be read, with the code, message and hint of its finding."""

    def __init__(self, code: Code, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def pattern_of(pattern: Mapping[str, Any]) -> TimePattern:
    """The typed pattern. Raises `BadField` for the first field that cannot be read."""
    return TimePattern(**{name: read_field(name, pattern[name]) for name in FIELDS if name in pattern})


def read_field(name: str, value: Any) -> tuple[int, ...]:
    """A field's values as sorted numbers, each once. Weekday 0 is Sunday, month 1 January. Raises `BadField`."""
    numbers, bad = _read(name, value)
    if bad:
        raise bad[0]
    return tuple(sorted(numbers))


def bad_values(name: str, value: Any) -> tuple[BadField, ...]:
    """The values of a field that cannot be read, in order, each once."""
    found: dict[str, BadField] = {}
    for error in _read(name, value)[1]:
        found.setdefault(error.message, error)
    return tuple(found.values())


def _read(name: str, value: Any) -> tuple[set[int], list[BadField]]:
    items = value if isinstance(value, list) else [value]
    numbers: set[int] = set()
    bad: list[BadField] = []
    if len(items) + sum(len(item) for item in items if isinstance(item, str)) > _MOST_CHARACTERS:
        return numbers, [
            BadField(codes.INVALID_VALUE, f"{name} has more than {_MOST_CHARACTERS} characters", _example(name))
        ]
    if not items:
        bad.append(
            BadField(codes.INVALID_VALUE, f"{name} is an empty list", "leave it out, or list at least one value")
        )
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int | str):
            bad.append(
                BadField(codes.WRONG_TYPE, f"{name} must be numbers or text, not {_kind_of(item)}", _example(name))
            )
            continue
        words = [word.strip() for word in item.split(",")] if isinstance(item, str) else [str(item)]
        for word in words:
            try:
                numbers.add(_number(name, word))
            except BadField as error:
                bad.append(error)
    return numbers, bad


def _kind_of(item: object) -> str:
    """A short name for a value that may be large."""
    return {dict: "a mapping", list: "a list", type(None): "null"}.get(type(item)) or repr(item)


def _number(name: str, word: str) -> int:
    low, high = _BOUNDS[name]
    number = _plain_number(name, word)
    if number is None:
        raise _not_a_value(name, word)
    if not low <= number <= high:
        hint = "write 0 for Sunday" if (name, number) == ("weekdays", 7) else _example(name)
        raise BadField(codes.INVALID_VALUE, f"{name} go from {low} to {high}, not {number}", hint)
    return number


def _plain_number(name: str, word: str) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word) if len(word) <= 4 else 10**4  # noqa: PLR2004 - whatever is longer is out of bounds all the same
    folded = word[:1].upper() + word[1:].lower()
    names = _NAMES.get(name, ())
    return names.index(folded) + _OFFSETS[name] if folded in names else None


def _not_a_value(name: str, word: str) -> BadField:
    match = _RANGE.fullmatch(word)
    written = _expanded(name, match[1], match[2]) if match is not None and re.search(r"[*/-]", word) else None
    if written is not None:
        everything = word == "*" and name not in {"minutes", "hours"}
        hint = "leave it out to match every one" if everything else f'write "{written}"'
        return BadField(codes.LIST_ONLY, f"{name} takes lists only, no ranges, steps or wildcards: {word!r}", hint)
    if not word:
        return BadField(
            codes.INVALID_VALUE, f"{name} has an empty value", "remove the comma too many, or leave the field out"
        )
    known = _NAMES.get(name, ())
    short = word[:3].capitalize()
    hint = f"write {short}" if short in known else nearest(word, known) or _example(name)
    return BadField(codes.INVALID_VALUE, f"{word!r} is not one of the {name}", hint)


def _expanded(name: str, part: str, step: str | None) -> str | None:
    """The list that a cron range or step stands for; None where it is no valid one either."""
    low, high = _BOUNDS[name]
    if part == "*":
        first, last = low, high
    else:
        ends = [_plain_number(name, end.strip()) for end in part.split("-")]
        if None in ends:
            return None
        first = ends[0] or 0
        last = (ends[-1] or 0) if len(ends) > 1 else high
    if not (low <= first <= high and low <= last <= high) or step == "0":
        return None
    # Cron has no range from Friday to Monday, but its meaning is clear.
    numbers = [*range(first, last + 1)] if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    chosen = numbers[:: int(step)] if step else numbers
    names = _NAMES.get(name)
    return ",".join(names[number - _OFFSETS[name]] if names else str(number) for number in chosen)


def _example(name: str) -> str:
    low, high = _BOUNDS[name]
    names = _NAMES.get(name)
    return (
        f'write it like "{names[1]},{names[2]}", or {low} to {high}' if names else f"write numbers from {low} to {high}"
    )
