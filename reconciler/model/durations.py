"""Durations as Go writes them (`720h`, `1h30m`, `90s`)."""

from __future__ import annotations

import re
from datetime import timedelta

from reconciler.model.errors import Invalid

_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
"""Go's longest duration in nanoseconds, the unit it counts in."""
_LONGEST = 2**63 - 1
_MOST_DIGITS = 19
"""A number with more digits exceeds the longest duration in any unit."""
_MOST_CHARACTERS = 200
"""Far longer than any duration that Go itself prints."""
_MOST_SHOWN = 40
ANY_DURATION = 'write hours, minutes and seconds, such as "720h" or "1h30m"'
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)")
_NEGATIVE = re.compile(r"-[0-9]{1,9}(ms|s|m|h)")
_DAYS = re.compile(r"(?:([0-9]{1,3})w)?(?:([0-9]{1,4})d)?(?:([0-9]{1,5})h)?((?:[0-9]{1,5}m)?(?:[0-9]{1,5}s)?)")


def parse_duration(text: str) -> timedelta:
    """`"1h30m"` → 90 minutes; `"0"` is zero. Go has no unit for days: write 24h. Raises `Invalid`.

    More than 292 years is invalid too: Go's time.ParseDuration counts nanoseconds in 64 bits.
    """
    if text == "0":
        return timedelta(0)
    if len(text) > _MOST_CHARACTERS:
        raise _too_long(text)
    total = 0
    position = 0
    while part := _PART.match(text, position):
        total += _nanoseconds(text, part)
        position = part.end()
    if not text or position != len(text):
        raise Invalid(
            f"{text!r} is not a duration",
            hint=duration_hint(text) or ANY_DURATION,
        )
    if total > _LONGEST:
        raise _too_long(text)
    return timedelta(microseconds=total // 1000)


def duration_hint(text: str) -> str:
    """What to write for a negative duration, or one in days or weeks, which Go does not know: `write "24h"` for `1d`; else ""."""
    if _NEGATIVE.fullmatch(text):
        return f'write a duration of 0 or more, such as "{text[1:]}"'
    found = _DAYS.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return ""
    hours = 168 * int(found[1] or 0) + 24 * int(found[2] or 0) + int(found[3] or 0)
    return f'write "{hours}h{found[4]}"'


def _nanoseconds(text: str, part: re.Match[str]) -> int:
    whole, fraction, unit = part[1].lstrip("0"), (part[2] or "")[:_MOST_DIGITS], _UNITS[part[3]]
    if len(whole) > _MOST_DIGITS:
        raise _too_long(text)
    nanoseconds: int = int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
    return nanoseconds


def _too_long(text: str) -> Invalid:
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return Invalid(f"{shown!r} is too long a duration", hint="write at most 2562047h, which is 292 years")


def format_duration(duration: timedelta) -> str:
    """The shortest exact form, to the millisecond: `1h30m`, `1m30s` for 90 seconds, `0s` for zero."""
    milliseconds = round(duration / timedelta(milliseconds=1))
    parts = []
    for unit, length in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
