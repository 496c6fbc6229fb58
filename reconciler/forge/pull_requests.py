"""What headroom keeps on a pull request: its comment, the status and annotations; and its own pull request of proposals.

Runs may overtake each other. An older one never replaces a newer one's text, and of two comments made at the same time one stays. No
forge can update a comment on the condition that it is unchanged. So each run looks again a while after writing, and repairs what an
older run has overwritten.
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
from reconciler.ports import Annotation, Comment, CommitStatus, Forge

SETTLE = 2.0
"""Seconds until a run looks again, longer than others take from reading to writing."""
_ROUNDS = 5
MOST_BYTES = 65_000
"""The longest comment in bytes. GitHub allows 65,536 characters, and bytes are never fewer."""
_MARKER = re.compile(r"<!-- headroom:report key=(?P<key>\S+) at=(?P<at>\S+) commit=(?P<commit>\S*) -->")
_RETIRED = "<!-- headroom:retired -->"
_CUT = "\n> The details are left out here: they are too long for a comment. The summary above is complete.\n"


class Mode(StrEnum):
    """What happens to an earlier run's comment: it is updated, kept next to a new one, hidden, or deleted."""

    UPDATE = "update"
    NEW = "new"
    HIDE_AND_NEW = "hide-and-new"
    DELETE_AND_NEW = "delete-and-new"


class Posted(StrEnum):
    """What was done. stale: nothing, since a newer run has commented. skipped: nothing, since there is no change to report."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Report:
    """key: its subject, so that one pull request can have several. at: the instant it is about. commit: the head's. body: Markdown."""

    key: str
    at: datetime
    commit: str
    body: str

    @property
    def text(self) -> str:
        """The text with its marker, cut to the length of a comment."""
        at = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        marker = f"<!-- headroom:report key={quote(self.key) or '-'} at={at} commit={self.commit} -->"
        return f"{marker}\n{_fitted(self.body)}"


@dataclass(frozen=True, slots=True)
class _Said:
    """One of this account's comments, with the content of its marker."""

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
    """Posts the report. only_if_there: only updates an existing comment. Raises the forge's failures."""
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
    """Repeats until the first comment has the newest text and no other is left."""
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
    """This account's comments about `key`, the oldest first."""
    said = []
    for comment in forge.comments(number):
        marker = _MARKER.match(comment.body)
        if marker is None or marker["key"] != (quote(key) or "-"):
            continue
        try:
            at = datetime.fromisoformat(marker["at"])
        except ValueError:
            continue
        said.append(_Said(comment, at, marker["commit"]))
    return said


def _order(report: Report) -> tuple[datetime, str]:
    return (report.at, report.commit)


def _same(left: str, right: str) -> bool:
    """Whether both texts are equal. Forges change line ends and drop trailing blank lines."""
    return left.replace("\r\n", "\n").rstrip() == right.replace("\r\n", "\n").rstrip()


def _fitted(body: str) -> str:
    """The whole report; if that is too long for a comment, the part before its details."""
    if len(body.encode()) <= MOST_BYTES:
        return body
    summary = body.partition("<details")[0]
    kept = summary.encode()[: MOST_BYTES - len(_CUT.encode())].decode(errors="ignore")
    return kept.rstrip() + "\n" + _CUT


@dataclass(frozen=True, slots=True)
class Publication:
    """summary: Markdown above the annotations."""

    report: Report
    status: CommitStatus
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()


def publish(
    forge: Forge,
    number: int,
    publication: Publication,
    mode: Mode = Mode.UPDATE,
    *,
    only_if_there: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Posted:
    """Publishes, unless the commit is no longer the pull request's head: the run for the new one will do it."""
    commit = publication.report.commit
    if forge.pull_request(number).head_commit != commit:
        return Posted.STALE
    outcome = post(forge, number, publication.report, mode, only_if_there=only_if_there, wait=wait)
    if outcome is not Posted.STALE:
        if publication.annotations:
            forge.annotate(commit, publication.status, publication.summary, publication.annotations)
        forge.set_status(commit, publication.status)
    return outcome


@dataclass(frozen=True, slots=True)
class Proposal:
    """It is identified by branch and title; nothing else is remembered."""

    branch: str
    base: str
    title: str
    body: str


def is_declined(forge: Forge, proposal: Proposal) -> bool:
    """Whether somebody has closed this one without merging it. It is then not opened again."""
    pulls = [pull for pull in forge.pull_requests_of(proposal.branch) if pull.base_branch == proposal.base]
    if any(pull.is_open for pull in pulls):
        return False
    return any(pull.title == proposal.title and not pull.merged for pull in pulls)


def keep_open(forge: Forge, proposal: Proposal, *, changed: bool) -> int | None:
    """Opens or updates it; returns its number, None if it was declined. changed: whether the branch was just pushed, so that the body
    is new."""
    for pull in forge.pull_requests_of(proposal.branch):
        if pull.is_open and pull.base_branch == proposal.base:
            if changed or pull.title != proposal.title:
                forge.edit_pull_request(pull.number, title=proposal.title, body=proposal.body)
            return pull.number
    if is_declined(forge, proposal):
        return None
    made = forge.open_pull_request(title=proposal.title, body=proposal.body, head=proposal.branch, base=proposal.base)
    return made.number


def close_proposal(forge: Forge, branch: str, base: str) -> None:
    """Closes it, since there is nothing left to propose."""
    for pull in forge.pull_requests_of(branch):
        if pull.is_open and pull.base_branch == base:
            forge.close_pull_request(pull.number)
