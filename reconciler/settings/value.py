"""Converts and checks one setting's value, from a file, a variable or a flag."""

from __future__ import annotations

from dataclasses import MISSING, Field
from datetime import timedelta
from typing import Any

from reconciler.model.errors import Invalid, Misused
from reconciler.model.quantity import parse_duration

_CHOICES = {
    "dialect": ("karpenter", "ca"),
    "drift": ("correct", "report"),
    "forge.kind": ("", "github", "gitlab", "gitea"),
    "buffers.fulfilment": ("placeholder", "native", "balloon"),
    "placement.mode": ("fast", "optimal"),
    "logs.form": ("console", "json"),
    "logs.level": ("debug", "info", "warning", "error"),
}
_PARTS = ("placement.spot_share",)
"""Settings that are shares, and must be above 0."""
_MOST_COUNTED = 1_000_000
"""The most nodes, chunks or instance types: more than any cluster has, and far below the limits of placement's integers."""
_RANGES: dict[str, tuple[float, float]] = {
    "caps.price_per_hour": (0, 1_000_000_000),
    "caps.prune_share": (0, 1),
    "placement.instance_types": (1, 600),  # as many as Karpenter sends for a launch (MaxInstanceTypes)
}
"""Bounds of numbers with another range than 0 and above."""


def converted(name: str, written: str, item: Field[Any], value: object, where: str) -> object:
    """The value of a setting. name: dotted, as in `setting_names`. written: its name in messages. where: put before that.

    Raises `Misused`.
    """
    default = item.default if item.default is not MISSING else None
    expected = {
        timedelta: 'a duration such as "1m30s"',
        bool: "true or false",
        int: "a whole number",
        float: "a number",
    }
    kind = type(default)
    try:
        result = _parsed(kind, value)
    except (ValueError, TypeError, Invalid) as error:
        raise Misused(
            f"{where}{written} is {value!r}, expected {expected.get(kind, 'a string')}",
            hint=error.hint if isinstance(error, Invalid) else "",
        ) from error
    choices = _CHOICES.get(name)
    if choices and result not in choices:
        raise Misused(f"{where}{written} is {value!r}, expected one of {', '.join(choices)}")
    if name == "placement.optimal_within" and result == timedelta(0):
        raise Misused(
            f"{where}{written} is {value!r}, expected a duration of more than 0",
            hint="with no time nothing cheaper is ever found: write placement.mode: fast for that",
        )
    if name in _PARTS and not 0 < float(str(result)) <= 1:
        raise Misused(
            f"{where}{written} is {value!r}, expected more than 0, at most 1",
            hint="it is a part of the whole: write 0.25 for a quarter; 1 is no bound",
        )
    if isinstance(result, int | float) and not isinstance(result, bool):
        _check_range(name, result, f"{where}{written} is {value!r}")
    return result


def _check_range(name: str, number: float, told: str) -> None:
    least, most = _RANGES.get(name, (0, _MOST_COUNTED))
    if not number >= least:  # and not a number (.nan) is in no range
        raise Misused(f"{told}, expected {least:,} or more")
    if number > most:
        raise Misused(f"{told}, expected at most {most:,}")


def _parsed(kind: type[Any], value: object) -> object:
    if kind is timedelta:
        if isinstance(value, timedelta):
            return value
        return parse_duration(f"{value}s" if isinstance(value, int) else str(value))
    if kind is bool:
        words = {"true": True, "false": False, "1": True, "0": False}
        if isinstance(value, bool):
            return value
        if str(value).lower() not in words:
            raise ValueError(value)
        return words[str(value).lower()]
    if kind in {int, float}:
        if isinstance(value, bool):
            raise ValueError(value)
        return kind(str(value))
    return value if isinstance(value, str) else str(value)
