"""Phrases that every report shares: counts, lists, money, times, how a demand is served; and rows that say the same, joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.model.demand import Keeper, Service
from reconciler.model.refs import abridged, by_key

NOT_SHOWN = "nothing in the cluster shows that an autoscaler serves CapacityBuffers"
_TEN_CENTS = 0.1
MOST_NAMES = 3
"""The most names in one row; the rest is counted."""
Row = dict[str, Any]


def local_zone(now: datetime) -> tzinfo:
    """The machine's own time zone at `now`, the default."""
    zone = now.astimezone().tzinfo
    assert zone is not None
    return zone


def moment(time: datetime, zone: tzinfo | None) -> str:
    """`2026-11-21 08:00 CET (07:00 UTC)`; only UTC if that is the zone. zone None: the machine's.

    At the ends of the calendar a local time may be out of range; then only UTC is shown.
    """
    until = "%Y-%m-%d %H:%M"
    universal = time.astimezone(UTC)
    try:
        local = time.astimezone(zone)
    except (OverflowError, ValueError):
        local = universal
    if local.utcoffset() == universal.utcoffset():
        return universal.strftime(f"{until} UTC")
    pattern = "%H:%M UTC" if local.date() == universal.date() else f"{until} UTC"
    return f"{local.strftime(until)} {local.tzname()} ({universal.strftime(pattern)})"


def short_revision(revision: str | None) -> str:
    """`main@1a2b3c4d5e6f`, with enough of the commit's name to find it. None is the working tree."""
    if revision is None:
        return "the working tree"
    name, _, commit = revision.partition("@sha1:")
    return f"{name}@{commit[:12]}" if commit else revision


def cluster_title(name: str) -> str:
    """A cluster's name in a title: `snapshot:captured/production.tar.gz` is `production`."""
    _, separator, rest = name.partition(":")
    last = rest.rstrip("/").rpartition("/")[2] if separator else name
    return last.removesuffix(".tar.gz") or name


def dollars(amount: float, digits: int = 2) -> str:
    return f"-${-amount:,.{digits}f}" if amount < 0 else f"${amount:,.{digits}f}"


def an_hour(price: float) -> str:
    """A sum of prices an hour: `$1.05`, and below ten cents `$0.0042`, since $0.00 an hour is $3.02 over 30 days. Nothing small is `$0.0000`."""
    return dollars(max(price, 0.0001), 4) if 0 < price < _TEN_CENTS else dollars(price)


def signed_dollars(amount: float) -> str:
    text = dollars(amount)
    return text if amount < 0 else f"+{text}"


def change_words(before: float, after: float) -> str:
    """`+$1.20`, `no change`: the difference is rounded once, so that a headline, a bound and a row say the same."""
    return signed_dollars(after - before) if round(after - before, 2) else "no change"


def amounts_words(before: float, after: float) -> str:
    """`$1.00 → $2.20`: the second is the first and the rounded difference, so that a reader who subtracts gets what `change_words` says."""
    return f"{dollars(before)} → {dollars(round(before, 2) + round(after - before, 2))}"


def percent_words(before: float, after: float) -> str:
    """`+$203.10 (+75%)`, `no change`. Without a percentage where there was nothing before, and of less than half a percent."""
    words = change_words(before, after)
    if words == "no change" or round(before, 2) <= 0:
        return words
    percent = f"{(after - before) / before:+,.0%}"
    return words if percent in {"+0%", "-0%"} else f"{words} ({percent})"


def hourly(price: float) -> str:
    """A price an hour with four digits, since prices of single nodes differ by fractions of a cent."""
    return f"{dollars(price, 4)}/h"


def keeper_words(service: Service) -> str:
    """`headroom`, `Karpenter`, `balloon pods`."""
    if service.by is Keeper.AUTOSCALER:
        return service.autoscaler or "an autoscaler"
    return str(service.by)


def size_words(service: Service | None) -> str:
    """How many chunks are asked for: `10`, `not ready`, `left to another`, `absent` for None."""
    if service is None:
        return "absent"
    if service.is_left:
        return "left to another"
    return "not ready" if service.wanted is None else f"{service.wanted:,}"


def table_row(name: str, what: str, why: str, *, sign: str = "", fields: Sequence[str] = (), **more: object) -> Row:
    """A row of a report's table. sign: what becomes of it, if anything. fields: lines that stand in place of why."""
    return {"sign": sign, "name": name, "what": what, "why": why, "fields": list(fields), **more}


def grouped(rows: Iterable[Row], *, noun: str = "") -> list[Row]:
    """Joins rows that differ only in their name, at the position of the first. noun: for rows whose names mean nothing, such as new
    nodes, which are counted: `3 nodes`. A row's `things` is how many it stands for, and `every` has their names,
    which pages that have room show."""
    alike = by_key((repr([(field, value) for field, value in row.items() if field != "name"]), row) for row in rows)
    return [
        {**same[0], "name": _names(names, noun), "every": [] if noun else names, "things": len(same)}
        for same in alike.values()
        if (names := [str(row["name"]) for row in same])
    ]


def _names(names: Sequence[str], noun: str) -> str:
    if len(names) == 1:
        return names[0]
    if noun:
        return f"{len(names):,} {noun}s"
    return abridged(names, MOST_NAMES)
