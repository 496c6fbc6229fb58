"""Joins rows that say the same about several things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reconciler.model.sentences import abridged

MOST_NAMES = 3
"""The most names in one row; the rest is counted."""

Row = dict[str, Any]


def grouped(rows: Iterable[Row], name: str = "name", *, noun: str = "") -> list[Row]:
    """Joins rows that differ only in their name, at the position of the first. noun: for rows whose names mean nothing, such as new
    nodes, which are counted: `3 nodes`. A row's `things` is how many it stands for, and `every` has their names,
    which pages that have room show."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        key = repr([(field, value) for field, value in row.items() if field != name])
        alike.setdefault(key, []).append(row)
    return [
        {**same[0], name: _names(names, noun), "every": [] if noun else names, "things": len(same)}
        for same in alike.values()
        if (names := [str(row[name]) for row in same])
    ]


def _names(names: Sequence[str], noun: str) -> str:
    if len(names) == 1:
        return names[0]
    if noun:
        return f"{len(names):,} {noun}s"
    return abridged(names, MOST_NAMES)
