"""Durations as Go writes them (`720h`, `1h30m`, `90s`). Read by manifests, settings and demand; printed by report."""

from __future__ import annotations

import re
from datetime import timedelta

from reconciler.model.errors import Invalid

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def parse_duration(text: str) -> timedelta:
    """`"1h30m"` → 90 minutes; `"0"` is zero. Days are not a Go unit: 24h. Raises `Invalid`."""
    if text == "0":
        return timedelta(0)
    total = timedelta(0)
    position = 0
    for part in _PART.finditer(text):
        if part.start() != position:
            break
        total += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    if not text or position != len(text):
        raise Invalid(f"{text!r} is not a duration", hint='write hours, minutes and seconds, such as "720h" or "1h30m"')
    return total


def format_duration(duration: timedelta) -> str:
    """The shortest exact form: `1h30m`, `90s` becomes `1m30s`, zero `0s`."""
    milliseconds = round(duration / timedelta(milliseconds=1))
    parts = []
    for unit, length in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
