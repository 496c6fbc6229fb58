"""Cron expressions exactly as Karpenter's parser takes them.

The rules are those of robfig/cron v3's standard parser, which Karpenter uses for a budget's schedule in UTC. It takes five fields or a
descriptor, names for months and weekdays, and weekdays 0-6. Where day of month and day of week are both restricted, either is
enough. Only a bare `*` or `?` is unrestricted (`*/2` is a restriction). What that parser refuses is `Invalid` here, and so is `@every`,
which the CustomResourceDefinition refuses. Its oddities are kept: `,` is an empty field that never matches, and everything after `*-` is
ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from reconciler.model.errors import Invalid
from reconciler.model.quantity import whole_number
from reconciler.timetable.time_zone import Seconds, dates_of, days_within

_SPACE = re.compile(r"[^\S\x1c-\x1f]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[tuple[str, int], ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, tuple(zip(_MONTHS, range(1, 13), strict=True))),
    _Field("day of week", 0, 6, tuple(zip(_WEEKDAYS, range(7), strict=True))),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Cron:
    """One parsed expression. minutes, hours: ascending. either: day of month or day of week is enough; otherwise both must match."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @property
    def never_fires(self) -> bool:
        """Whether there is never a hit, as on 30 February. Karpenter treats a budget with such a schedule as always open."""
        dates = dates_of(self.days, self.months)
        on_some_day = dates or (self.weekdays and self.months) if self.either else dates and self.weekdays
        return not (self.minutes and self.hours and on_some_day)

    def days_within(self, first: int, last: int) -> Seconds:
        """The matching days from first to last, both included, as days since 1970."""
        return days_within(self.days, self.months, self.weekdays, first, last, either=self.either)


@lru_cache(maxsize=4096)
def parse_cron(text: str) -> Cron:
    """The expression as Karpenter understands it, in UTC. Raises `Invalid` for what it cannot evaluate."""
    stripped = _SPACE.sub(" ", text).strip(" ")
    if stripped.startswith("@"):
        fields = _DESCRIPTORS.get(stripped)
        if fields is None:
            hint = f"write one of {', '.join(sorted(_DESCRIPTORS))}, or five fields"
            raise Invalid(f"schedule {text!r} is not a descriptor", hint=hint)
        return replace(parse_cron(fields), text=text)
    words = stripped.split(" ") if stripped else []
    if words and words[0].startswith(("TZ=", "CRON_TZ=")):
        raise Invalid(
            f"schedule {text!r} names a time zone, which budgets cannot have: they are in UTC",
            hint=f"write {' '.join(words[1:])!r} in UTC, or set the annotation headroom.dev/timezone",
        )
    if len(words) != len(_FIELDS):
        raise Invalid(
            f"schedule {text!r} has {len(words)} {'field' if len(words) == 1 else 'fields'}, not 5",
            hint="write minute, hour, day of month, month and day of week, such as '0 9 * * mon-fri'"
            + ("; there is no field for seconds" if len(words) == len(_FIELDS) + 1 else ""),
        )
    values = [_values(text, word, field) for word, field in zip(words, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = values
    either = not any_day and not any_weekday
    return Cron(text, tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, either)


def _values(text: str, word: str, field: _Field) -> tuple[frozenset[int], bool]:
    """The numbers that one field matches, and whether it counts as unrestricted."""
    numbers: set[int] = set()
    unrestricted = False
    for part in filter(None, word.split(",")):
        matched, is_star = _part(text, part, field)
        numbers.update(matched)
        unrestricted |= is_star
    return frozenset(numbers), unrestricted


def _part(text: str, part: str, field: _Field) -> tuple[range, bool]:
    """`N`, `A-B`, `*` or `?`, each with an optional `/STEP`; `N/STEP` runs to the field's end."""
    span, *steps = part.split("/")
    bounds = span.split("-")
    is_star = bounds[0] in {"*", "?"}
    if is_star:
        low, high = field.low, field.high
    else:
        low = _number(text, bounds[0], field)
        high = low if len(bounds) == 1 else _number(text, bounds[1], field)
        if len(bounds) > 2:  # noqa: PLR2004 - a range has two ends
            raise _refused(text, f"{part!r} has too many hyphens", field)
    if len(steps) > 1:
        raise _refused(text, f"{part!r} has too many slashes", field)
    step = 1
    if steps:
        step = _integer(text, steps[0], field)
        if len(bounds) == 1:
            high = field.high
        is_star = is_star and step <= 1
    if low < field.low:
        raise _refused(text, f"{low} is below {field.low}", field)
    if high > field.high:
        raise _refused(text, f"{high} is above {field.high}", field)
    if low > high:
        raise _backwards(text, part, (low, high), field)
    if step == 0:
        raise _refused(text, f"{part!r} has step 0", field)
    return range(low, high + 1, step), is_star


def _backwards(text: str, part: str, bounds: tuple[int, int], field: _Field) -> Invalid:
    """A range over the field's end: `fri-mon` means `fri-sat,sun-mon`, and 22-6 of hours 22-23,0-6."""
    refused = _refused(text, f"{part!r} begins after its end", field)
    names = {} if part[0].isdigit() else {number: name for name, number in field.words}

    def span(first: int, last: int) -> str:
        ends = [names.get(number, str(number)) for number in dict.fromkeys((first, last))]
        return "-".join(ends)

    if "/" not in part:
        refused.hint = f"write {span(bounds[0], field.high)},{span(field.low, bounds[1])}"
    return refused


def _number(text: str, word: str, field: _Field) -> int:
    names = dict(field.words)
    return names[word.lower()] if word.lower() in names else _integer(text, word, field)


def _integer(text: str, word: str, field: _Field) -> int:
    number = None if word.startswith("-") else whole_number(word)
    if number is None:
        raise _refused(text, f"{word!r} is not a number", field)
    return number


def _refused(text: str, why: str, field: _Field) -> Invalid:
    names = f", or {field.words[0][0]}-{field.words[-1][0]}" if field.words else ""
    sunday = "; Sunday is 0" if field.low == 0 and field.words else ""
    return Invalid(
        f"schedule {text!r}: {why}, in the field for {field.name}",
        hint=f"write {field.low}-{field.high}{names}{sunday}",
    )
