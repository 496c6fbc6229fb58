"""Phrases about what stands, which the daemon's pages and `headroom status` share. Rows are those of `headroom.dev/status/v1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.refs import by_key, counted, listed
from reconciler.report.status.document import ATTENTION
from reconciler.report.words import an_hour

Row = Mapping[str, Any]
MOST_NAMED = 2
MOST_REASONS = 3
"""The most reasons why nothing may be deleted, in words; the JSON has all of them."""
STATE_WORDS = {
    "not_ready": "not ready",
    "waiting": "no room yet",
    "left": "left to another",
    "capacity_revoked": "revoked",
    "booking_expired": "ended",
    "empty": "asks for nothing",
    "unknown": "not known",
}
"""For people, where the state itself is not the word."""
WHY_MADE = {
    "start": "headroom started",
    "request": "asked for",
    "commit": "new commit",
    "edge": "at a set time",
    "retry": "tried again",
    "clock": "clock was set",
    "taken": "room was taken",
    "came": "room has come",
    "change": "cluster changed",
    "tick": "regular pass",
}
"""Why a pass was made, by its trigger."""


def buffers_in(document: Row) -> list[Row]:
    """Those that somebody may have to look at first, the worst of them first; then by name."""
    order = {state: number for number, state in enumerate(ATTENTION)}
    rows = [row for row in document["demands"] if row["kind"] != REQUEST_KIND]
    return sorted(rows, key=lambda row: (order.get(row["capacity"]["state"], len(order)), name_of(row), row["kind"]))


def requests_in(document: Row) -> list[Row]:
    return [row for row in document["demands"] if row["kind"] == REQUEST_KIND]


def name_of(row: Row) -> str:
    """`shop/web`."""
    return f"{row['namespace']}/{row['name']}" if row["namespace"] else str(row["name"])


def headline(document: Row) -> str:
    """How the buffers are, in one sentence without a full stop."""
    rows = buffers_in(document)
    if document.get("leads") is False:
        leader = document["leader"]
        past = "" if document["planned"] is None else "; what follows is as of its last pass"
        return f"This replica is on standby{f': {leader} leads' if leader else ', and no leader is known'}{past}"
    if document["planned"] is None:
        return "No pass has made a plan yet"
    if not rows:
        return "No buffers are declared"
    wrong = [row for row in rows if row["capacity"]["state"] in ATTENTION]
    if wrong:
        verb = "is" if len(wrong) == 1 else "are"
        named = listed(map(_lack, wrong), most=MOST_NAMED)
        return f"{len(wrong):,} of {counted(len(rows), 'buffer')} {verb} not full: {named}"
    idle = [row for row in rows if row["capacity"]["state"] != "ready"]
    full = len(rows) - len(idle)
    others = f"; {len(idle):,} {'is' if len(idle) == 1 else 'are'} suspended, empty or kept by others" if idle else ""
    if not full:
        return "No buffer asks for capacity of headroom's now"
    whole = f"All {full:,} buffers are ready" if full > 1 else "1 buffer is ready" if idle else "The buffer is ready"
    return f"{whole}{others}"


def _lack(row: Row) -> str:
    capacity = row["capacity"]
    if capacity["state"] == "not ready":
        return f"{name_of(row)} is not ready"
    missing, coming = capacity["missing"], capacity["coming"]
    lacks = f"lacks {missing:,}" if missing else f"waits for {coming:,}"
    return f"{name_of(row)} {lacks} of {counted(row['desired'] or 0, 'chunk')}"


def findings_in(document: Row) -> list[tuple[Row, int]]:
    """Errors first, then warnings, then what is only worth knowing: of that the first of each code, and how many others it has. A repository
    may have hundreds of files of other tools."""
    ordered: list[tuple[Row, int]] = [
        (row, 0) for severity in ("error", "warning") for row in document["findings"] if row["severity"] == severity
    ]
    by_code = by_key((row["code"], row) for row in document["findings"] if row["severity"] == "info")
    return [*ordered, *((first, len(others)) for first, *others in by_code.values())]


def size_words(row: Row) -> str:
    """`2/2 ready`, `1/4, 2 coming, 1 missing`, `not ready`."""
    capacity, wanted = row["capacity"], row["desired"]
    state = STATE_WORDS.get(capacity["state"], capacity["state"])
    if not wanted or capacity["state"] in {"suspended", "unknown"}:
        return str(state)
    parts = [f"{capacity['ready']:,}/{wanted:,} ready"]
    parts += [f"{capacity['coming']:,} coming"] if capacity["coming"] else []
    parts += [f"{capacity['missing']:,} missing"] if capacity["missing"] else []
    return ", ".join(parts)


def request_words(row: Row) -> str:
    """`booked, room for 8 pods`, `no room yet for 8 of 8 pods`."""
    state, wanted = row["capacity"]["state"], row["desired"] or 0
    word = STATE_WORDS.get(state, state)
    if state == "booked":
        return f"booked, room for {counted(wanted, 'pod')}"
    if state == "waiting":
        missing = row["capacity"]["missing"]
        return f"{word} for {missing:,} of {counted(wanted, 'pod')}" if missing else "its nodes are on their way"
    return str(word)


def holding_words(row: Row) -> str:
    """`2 nodes, $0.42/h`; "" for a demand that no node holds."""
    capacity = row["capacity"]
    if not capacity["nodes"]:
        return ""
    return f"{counted(len(capacity['nodes']), 'node')}, {an_hour(capacity['pricePerHour'])}/h"


def pool_facts(row: Row) -> list[str]:
    """`3 held`, `1 drifted`: what of a NodePool's nodes is worth a word."""
    words = (
        ("held", "held"),
        ("coming", "coming"),
        ("notReady", "not ready"),
        ("going", "going"),
        ("drifted", "drifted"),
        ("expiring", "expiring within a day"),
        ("unpriced", "without a price"),
    )
    return [f"{row[key]:,} {word}" for key, word in words if row[key]]


def unpriced_words(document: Row) -> str:
    """`without the price of 2 nodes`, of what all nodes cost; "" where every price is known."""
    count = sum(row["unpriced"] for row in document["nodePools"])
    return f"without the price of {counted(count, 'node')}" if count else ""


def why_of(row: Row) -> str:
    """Why a demand has not what it asks for, or why it asks for nothing; "" for one that is full."""
    state = row["capacity"]["state"]
    if state in {"ready", "booked"}:
        return ""
    if row["service"]["why"]:
        return str(row["service"]["why"])
    types = {"suspended": ("Suspended",), "empty": ("Suspended",)}.get(
        state, ("Failed", "CapacityRevoked", "BookingExpired", "Provisioning", "Provisioned", "Fulfilment")
    )
    messages = {item["type"]: item["message"] for item in row["conditions"]}
    message = next((messages[name] for name in types if messages.get(name)), "")
    return message or ("; ".join(row["explanation"]) if state == "empty" else "")


def held_back(document: Row) -> list[tuple[str | None, str]]:
    """What is not done although it is due, with the instant (RFC 3339) until which; None where no clock ends the wait."""
    waiting: Row = document.get("waitingDeletions") or {}
    count = len(waiting.get("objects", ()))
    due = f"{counted(count, 'object')} {'waits' if count == 1 else 'wait'} to be deleted"
    is_blocked = bool(count) and waiting["next"] is None
    waits: list[tuple[str | None, str]] = []
    if document["blocked"]:
        words = f"nothing is deleted or released{f', and {due}' if is_blocked else ''}"
        reasons, more = document["blocked"][:MOST_REASONS], len(document["blocked"]) - MOST_REASONS
        waits.append((None, f"{words}: {'; '.join(reasons)}{f'; and {more:,} more reasons' if more > 0 else ''}"))
    waits += [(None, note) for note in document["notes"]]
    if count and not is_blocked:
        cap = f"at most {waiting['mostInAnHour']:,} of {waiting['outOf']:,} go within an hour"
        waits.append((waiting["next"], f"{due} ({cap})"))
    return waits


def tile(name: str, value: str, more: str, tone: str = "") -> dict[str, str]:
    """One of the few numbers that are looked at first. more: a line below it. tone: good, bad or none."""
    return {"name": name, "value": value, "more": more, "tone": tone}


def chunks_tile(ready: int, wanted: int, buffers: int) -> dict[str, str]:
    """How many chunks of the buffers are ready."""
    value = f"{ready:,} of {wanted:,}" if wanted else "none"
    return tile(
        "Chunks ready", value, counted(buffers, "buffer"), "bad" if ready < wanted else "good" if wanted else ""
    )
