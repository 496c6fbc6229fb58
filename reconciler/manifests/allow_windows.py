"""The annotation `headroom.dev/allow-windows`: the only windows in which a NodePool's nodes may be disrupted.

One window a line, `SCHEDULE for DURATION [REASON…]`. `0 22 * * mon-fri for 8h` is one, and `0 2 * * sat for 4h Drifted` another.
Schedules and durations are those of disruption budgets, in the zone of `headroom.dev/timezone`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from reconciler.manifests.structure import nearest
from reconciler.model.errors import Invalid
from reconciler.model.quantity import parse_duration
from reconciler.model.schedules import AllowWindow
from reconciler.timetable.compiled_budgets import REASONS
from reconciler.timetable.cron import parse_cron

ALLOW_WINDOWS = "headroom.dev/allow-windows"
TIME_ZONE = "headroom.dev/timezone"
EXAMPLE = "0 22 * * mon-fri for 8h"
_DURATION = re.compile(r"(?:\d+h)?(?:\d+m)?(?:0s)?", re.ASCII)
_IN_DAYS = re.compile(r"([0-9]{1,5})d", re.ASCII)
_BY_LOWER_CASE = {reason.lower(): reason for reason in REASONS}


def allow_windows_of(text: str) -> tuple[AllowWindow, ...]:
    """The windows in the annotation's text. Raises `Invalid` for the first malformed line, naming it."""
    found = tuple(_of_line(number, line) for number, line in _lines(text))
    if not found:
        raise Invalid(f"{ALLOW_WINDOWS} names no window", hint=f'write one on each line, such as "{EXAMPLE}"')
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        if written:
            yield number, written


def _of_line(number: int, line: str) -> AllowWindow:
    schedule, word, rest = line.partition(" for ")
    if not word:
        raise _wrong(number, f"{line!r} has no duration", f'write "SCHEDULE for DURATION", such as "{EXAMPLE}"')
    length, *reasons = rest.replace(",", " ").split() or [""]
    try:
        cron = parse_cron(schedule)
    except Invalid as error:
        raise _wrong(number, error.message, error.hint) from error
    if cron.every is not None:
        raise _wrong(number, f"{schedule.strip()!r} has no fixed times", f'write five fields, such as "{EXAMPLE}"')
    if cron.never_fires:
        raise _wrong(number, f"{schedule.strip()!r} never fires, so nothing would ever be allowed", "correct the date")
    return AllowWindow(" ".join(schedule.split()), _duration(number, length), _reasons(number, reasons))


def _duration(number: int, text: str) -> timedelta:
    if not text or not _DURATION.fullmatch(text):
        days = _IN_DAYS.fullmatch(text)
        hint = f"write {int(days[1]) * 24}h" if days else "write hours and minutes, such as 8h or 8h30m"
        raise _wrong(number, f"{text!r} is not a duration in hours and minutes", hint)
    try:
        duration = parse_duration(text)
    except Invalid as error:
        raise _wrong(number, error.message, error.hint) from error
    if not duration:
        raise _wrong(number, "a window of zero length is never open", "write hours and minutes, such as 8h or 8h30m")
    return duration


def _reasons(number: int, words: list[str]) -> tuple[str, ...] | None:
    found = []
    for word in words:
        reason = _BY_LOWER_CASE.get(word.lower())
        if reason is None:
            hint = nearest(word, REASONS) or f"write {', '.join(REASONS)}, or none of them for every reason"
            raise _wrong(number, f"{word!r} is not a disruption reason", hint)
        found.append(reason)
    return tuple(sorted(set(found), key=REASONS.index)) if found else None


def _wrong(number: int, message: str, hint: str) -> Invalid:
    return Invalid(f"{ALLOW_WINDOWS}, line {number}: {message}", hint=hint)
