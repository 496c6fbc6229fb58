"""Whether all is well, decided here for the page, /status and `headroom status` alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.changes import NOT_WRITTEN
from reconciler.model.quantity import format_duration
from reconciler.report.words import counted

_OBJECT = ("kind", "namespace", "name")


def health_of(document: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """healthy: whether passes are made, succeed, and find no errors, however old those are. why: what is wrong, the worst first.

    A buffer that is short is no fault of headroom's: the rows of demands tell of it.
    """
    why = list(_wrong(document, now))
    return {"healthy": not why, "late": _is_late(document, now), "why": why}


def _wrong(document: Mapping[str, Any], now: datetime) -> Iterable[str]:
    is_standby = document.get("leads") is False
    if not document["passes"] and not is_standby:
        yield "no pass has ended yet"
    if document["heldUp"]:
        yield document["heldUp"]
    elif _is_late(document, now):
        after = format_duration(timedelta(seconds=document["lateAfter"]))
        yield f"no pass has ended for {after}, so that all of this may be out of date"
    if document["stalled"]:
        stall = document["stalled"]
        yield f"the last good commit stays in force, since the repository is stalled ({stall['reason']}: {stall['message']})"
    if document["message"] and not (is_standby and not document["passes"]):
        yield f"the last pass failed ({document['result']}): {document['message']}"
    failed = sum(row["outcome"] in NOT_WRITTEN for row in document["writes"])
    if failed:
        yield f"{counted(failed, 'write')} did not succeed"
    errors = [row for row in document["findings"] if row["severity"] == "error"]
    if errors:
        yield f"{_documents(errors)} errors"


def _is_late(document: Mapping[str, Any], now: datetime) -> bool:
    """A replica that does not lead makes no passes."""
    since = now - datetime.fromisoformat(document["finished"])
    return document.get("leads") is not False and since.total_seconds() > document["lateAfter"]


def _documents(errors: list[Mapping[str, Any]]) -> str:
    """`1 document has`, `2 documents have`: one document may have several errors."""
    count = len({tuple(row[key] for key in _OBJECT) if row["name"] else (row["file"], row["line"]) for row in errors})
    return f"{counted(count, 'document')} {'has' if count == 1 else 'have'}"
