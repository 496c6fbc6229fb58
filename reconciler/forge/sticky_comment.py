"""One comment on a pull request that is kept up to date, found by a hidden marker in its first line.

Runs may overtake each other. An older one never replaces what a newer one said, and of two comments that were made at once one
stays. No forge can change a comment only if it is still as it was read. So who has written looks again after a while,
and puts right what an older run, which had read before, wrote over it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import quote

from reconciler.forge.connection import GoneError
from reconciler.model.pull_requests import Comment
from reconciler.ports import Forge

SETTLE = 2.0
"""Seconds after which who has written looks again: longer than others take from reading to writing."""
_ROUNDS = 5
MOST_BYTES = 65_000
"""GitHub takes 65,536 characters, and bytes are never fewer."""
_MARKER = re.compile(r"<!-- headroom:report key=(?P<key>\S+) at=(?P<at>\S+) commit=(?P<commit>\S*) -->")
_RETIRED = "<!-- headroom:retired -->"
_CUT = "\n> The details are left out here: they are too long for a comment. The summary above is complete.\n"


class Mode(StrEnum):
    """What becomes of the comment of an earlier run: it is changed, stays beside a new one, is hidden, or is deleted."""

    UPDATE = "update"
    NEW = "new"
    HIDE_AND_NEW = "hide-and-new"
    DELETE_AND_NEW = "delete-and-new"


class Posted(StrEnum):
    """What was done. stale: a newer run has said something, so nothing; skipped: nothing changes, and nothing need be said."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Report:
    """key: what it is about, so that several can stand on one pull request. at: the instant it speaks of. commit: of the head.
    body: markdown."""

    key: str
    at: datetime
    commit: str
    body: str

    @property
    def text(self) -> str:
        """With the marker, and within what a comment may hold."""
        at = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        marker = f"<!-- headroom:report key={quote(self.key) or '-'} at={at} commit={self.commit} -->"
        return f"{marker}\n{_fitted(self.body)}"


@dataclass(frozen=True, slots=True)
class _Said:
    """A comment of ours with what its marker tells."""

    comment: Comment
    at: datetime
    commit: str

    @property
    def order(self) -> tuple[datetime, str]:
        return (self.at, self.commit)

    @property
    def body(self) -> str:
        return self.comment.body.partition("\n")[2]


def post(
    forge: Forge,
    number: int,
    report: Report,
    mode: Mode = Mode.UPDATE,
    *,
    only_if_there: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Posted:
    """Says it on the pull request. only_if_there: no comment is made where there was none. Raises what the forge does."""
    said = _said(forge, number, report.key)
    if only_if_there and not said:
        return Posted.SKIPPED
    if any(each.order > _order(report) for each in said):
        return Posted.STALE
    last = max(said, key=lambda each: each.order, default=None)
    if last is not None and last.commit == report.commit and _same(last.body, _fitted(report.body)):
        return Posted.UNCHANGED
    if mode is Mode.NEW:
        forge.add_comment(number, report.text)
        return Posted.CREATED
    if mode is Mode.UPDATE:
        _keep_one(forge, number, report, said, wait)
        return Posted.UPDATED if said else Posted.CREATED
    forge.add_comment(number, report.text)
    for _ in range(_ROUNDS):
        older = _said(forge, number, report.key)[:]
        newest = max(older, key=lambda each: each.order, default=None)
        older = [each for each in older if each is not newest]
        if not older:
            break
        for each in older:
            _put_away(forge, number, each.comment, mode)
        wait(SETTLE)
    return Posted.CREATED


def _keep_one(forge: Forge, number: int, report: Report, said: Sequence[_Said], wait: Callable[[float], None]) -> None:
    """Until the first comment has the newest words and no other is left."""
    for _ in range(_ROUNDS):
        newest = max(said, key=lambda each: each.order, default=None)
        text = report.text if newest is None or newest.order <= _order(report) else newest.comment.body
        changed = False
        try:
            if not said:
                forge.add_comment(number, text)
                changed = True
            elif not _same(said[0].comment.body, text):
                forge.edit_comment(number, said[0].comment, text)
                changed = True
        except GoneError:
            if not said:
                raise
            changed = True  # another run has deleted it
        for each in said[1:]:
            forge.delete_comment(number, each.comment)
            changed = True
        if not changed:
            return
        wait(SETTLE)
        said = _said(forge, number, report.key)


def _put_away(forge: Forge, number: int, comment: Comment, mode: Mode) -> None:
    if mode is Mode.DELETE_AND_NEW:
        forge.delete_comment(number, comment)
        return
    retired = Comment(comment.identity, f"{_RETIRED}\n{comment.body.partition(chr(10))[2]}", comment.node)
    forge.edit_comment(number, retired, retired.body)
    forge.hide_comment(number, retired)


def _said(forge: Forge, number: int, key: str) -> list[_Said]:
    """Our comments about `key`, the oldest first."""
    found = []
    for comment in forge.comments(number):
        marker = _MARKER.match(comment.body)
        if marker is None or marker["key"] != (quote(key) or "-"):
            continue
        try:
            at = datetime.fromisoformat(marker["at"])
        except ValueError:
            continue
        found.append(_Said(comment, at, marker["commit"]))
    return found


def _order(report: Report) -> tuple[datetime, str]:
    return (report.at, report.commit)


def _same(left: str, right: str) -> bool:
    """Forges write line ends their own way, and drop blank ones at the end."""
    return left.replace("\r\n", "\n").rstrip() == right.replace("\r\n", "\n").rstrip()


def _fitted(body: str) -> str:
    """The whole report, or where that is too long for a comment all that comes before its details."""
    if len(body.encode()) <= MOST_BYTES:
        return body
    summary = body.partition("<details")[0]
    kept = summary.encode()[: MOST_BYTES - len(_CUT.encode())].decode(errors="ignore")
    return kept.rstrip() + "\n" + _CUT
