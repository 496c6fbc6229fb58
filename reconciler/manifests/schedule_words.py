"""From plain words (`mon-fri 9-17`) to the YAML of a MetricsProducer, whose fields take lists and no ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.errors import Invalid

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_EVERY = frozenset(range(7))
_GROUPS = {
    "daily": _EVERY,
    "every day": _EVERY,
    "weekdays": frozenset(range(1, 6)),
    "weekend": frozenset({0, 6}),
    "weekends": frozenset({0, 6}),
}
_TIME = r"(?:noon|midnight|\d{1,2}(?::\d{2})?\s*(?:am|pm)?)"
_WINDOW = re.compile(
    rf"(?P<days>[a-z][a-z ,-]*?)?\s*(?P<start>{_TIME})\s*(?:-|–|to|until)\s*"
    rf"(?P<last>[a-z]{{3,9}}\s+)?(?P<end>{_TIME})(?:\s*=\s*(?P<replicas>\d{{1,9}}))?",
)
_LONGEST = 200
"""The longest text, in characters. The pattern is slow on thousands of them."""
_HALF_DAY, _HOURS, _MINUTES = 12, 24, 60
_NOT_A_WINDOW = 'write it like "mon-fri 9-17", "sat,sun 10:30-14", "daily 22-6" or "fri 17 - mon 9"'


@dataclass(frozen=True, slots=True)
class Window:
    """A window in which a number of replicas holds.

    words: as written. days, last_days: weekdays on which it begins and ends, 0 is Sunday. start, end: minutes of the day.
    replicas None: not given.
    """

    words: str
    days: frozenset[int]
    start: int
    last_days: frozenset[int]
    end: int
    replicas: int | None = None


def read_window(words: str) -> Window:
    """`[WEEKDAYS] FROM-TO[=REPLICAS]`, or `WEEKDAY FROM - WEEKDAY TO`. Raises `Invalid` with what to write instead."""
    short = " ".join(words.lower().split())
    match = _WINDOW.fullmatch(short) if len(short) <= _LONGEST else None
    if match is None:
        raise Invalid(f"{words!r} is not a window of time", hint=_NOT_A_WINDOW)
    days = _weekdays((match["days"] or "daily").strip(" ,"))
    start, end = _minutes(match["start"]), _minutes(match["end"])
    if start == _HOURS * _MINUTES:
        raise Invalid(f"{words!r} begins at 24:00", hint="write 0 and the next day")
    if match["last"]:
        if len(days) != 1:
            raise Invalid(f"{words!r} begins on several days and ends on one", hint=_NOT_A_WINDOW)
        last_days = _weekdays(match["last"].strip())
    else:
        last_days = days if end > start else _next(days)
    if end == _HOURS * _MINUTES:
        end, last_days = 0, _next(last_days)
    if (last_days, end) == (days, start):
        raise Invalid(
            f"{words!r} never ends: whenever it would end, it begins again",
            hint="give a value that always holds as --default",
        )
    replicas = None if match["replicas"] is None else int(match["replicas"])
    return Window(" ".join(words.split()), days, start, last_days, end, replicas)


def _next(days: frozenset[int]) -> frozenset[int]:
    return frozenset((day + 1) % 7 for day in days)


def _weekdays(words: str) -> frozenset[int]:
    if words in _GROUPS:
        return _GROUPS[words]
    days: set[int] = set()
    for part in re.split(r"\s*,\s*|\s+(?:and\s+)?", re.sub(r"\s*(?:-|\bto\b)\s*", "-", words)):
        first, dash, last = part.partition("-")
        begin = _weekday(first)
        end = _weekday(last) if dash else begin
        days |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return frozenset(days)


def _weekday(word: str) -> int:
    short = word[:3].capitalize()
    full = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    if short not in _DAYS or not full[_DAYS.index(short)].startswith(word):
        raise Invalid(f"{word!r} is not a weekday", hint=f"write {', '.join(_DAYS)}, a range such as mon-fri, or daily")
    return _DAYS.index(short)


def _minutes(words: str) -> int:
    """Minutes of the day; `24` is the end of the day."""
    if words in {"noon", "midnight"}:
        return _HALF_DAY * _MINUTES if words == "noon" else 0
    clock = words.rstrip("apm ")
    hour, _, minute = clock.partition(":")
    hours, minutes = int(hour), int(minute or 0)
    if words.endswith("m"):
        if not 1 <= hours <= _HALF_DAY:
            raise Invalid(f"{words!r} is not a time", hint="write 9am, 5:30pm, or 17:30")
        hours = hours % _HALF_DAY + (_HALF_DAY if words.endswith("pm") else 0)
    if minutes >= _MINUTES or hours * _MINUTES + minutes > _HOURS * _MINUTES:
        raise Invalid(f"{words!r} is not a time of the day", hint="write 9, 9:30, 17:30 or 24")
    return hours * _MINUTES + minutes


def schedule_yaml(
    *,
    name: str,
    namespace: str,
    timezone: str,
    default: int,
    windows: Sequence[tuple[Window, int]],
    lead_time: str = "",
) -> str:
    """The MetricsProducer as YAML.

    windows: with their replicas; where they overlap the first wins. name, namespace: valid, as the caller has checked.
    """
    lines = [
        "apiVersion: autoscaling.karpenter.sh/v1alpha1",
        "kind: MetricsProducer",
        "metadata:",
        f"  name: {name}",
        f"  namespace: {namespace}",
        "spec:",
        "  schedule:",
        f"    timezone: {timezone}",
        f"    defaultReplicas: {default}",
        "    behaviors:",
    ]
    for window, replicas in windows:
        lines += [
            f"      # {window.words}",
            f"      - replicas: {replicas}",
            f"        start: {_pattern(window.days, window.start)}",
            f"        end: {_pattern(window.last_days, window.end)}",
        ]
    lines += [
        "# A buffer follows it with these annotations:",
        f"#   headroom.dev/replicas-from: {name}",
    ]
    if lead_time:
        lines.append(f"#   headroom.dev/lead-time: {lead_time}")
    return "\n".join(lines) + "\n"


def _pattern(days: frozenset[int], time: int) -> str:
    """The pattern in YAML flow style, without fields that match every value."""
    hours, minutes = divmod(time, _MINUTES)
    names = [_DAYS[day % 7] for day in range(1, 8) if day % 7 in days]
    parts = [] if days == _EVERY else [f'weekdays: "{",".join(names)}"' if len(names) > 1 else f"weekdays: {names[0]}"]
    parts.append(f"hours: {hours}")
    if minutes:
        parts.append(f"minutes: {minutes}")
    return f"{{{', '.join(parts)}}}"
