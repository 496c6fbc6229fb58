"""What headroom keeps on a pull request: its comment, the status and annotations; and its own pull request of proposals.

Runs may overtake each other. What is said of the head replaces what was said of another commit, and of one commit the later run has the
word. Of two comments made at the same time one stays. No forge can update a comment on the condition that it is unchanged. So each run
looks again a while after writing, and repairs what an older run has overwritten.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from urllib.parse import quote

from reconciler.forge.connection import GoneError
from reconciler.model.errors import FORBIDDEN, Failure, Stalled
from reconciler.ports import Annotation, Comment, CommitStatus, Forge

SETTLE = 2.0
"""Seconds until a run looks again, longer than others take from reading to writing."""
_ROUNDS = 5
_MARKER = re.compile(r"<!-- headroom:report key=(?P<key>\S+) at=(?P<at>\S+) commit=(?P<commit>\S*) -->")
_RETIRED = "<!-- headroom:retired -->"


class Mode(StrEnum):
    """What happens to an earlier run's comment: it is updated, kept next to a new one, hidden, or deleted."""

    UPDATE = "update"
    NEW = "new"
    HIDE_AND_NEW = "hide-and-new"
    DELETE_AND_NEW = "delete-and-new"


class Posted(StrEnum):
    """What became of the comment. stale: nothing, since a newer run has commented. skipped: nothing, since there is no change to report."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    STALE = "stale"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Report:
    """key: its subject, so that one pull request can have several. made: when the run began that it is of. commit: the head's. body: Markdown."""

    key: str
    made: datetime
    commit: str
    body: str

    @property
    def text(self) -> str:
        """The text with its marker."""
        made = self.made.astimezone(UTC).isoformat().replace("+00:00", "Z")
        marker = f"<!-- headroom:report key={quote(self.key) or '-'} at={made} commit={self.commit} -->"
        return f"{marker}\n{self.body}"


@dataclass(frozen=True, slots=True)
class Publication:
    """summary: Markdown above the annotations."""

    report: Report
    status: CommitStatus
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()


@dataclass(slots=True)
class Published:
    """What was done, also where a later request failed."""

    comment: Posted | None = None
    """None if nothing was decided about the comment, or if it was refused."""
    status: bool = False
    annotated: bool = False
    tried: bool = False
    """Whether the forge was asked to change anything."""
    failure: Failure | None = None
    """What ended it; otherwise the first thing that the token may not do."""

    @property
    def nothing(self) -> bool:
        """Whether no change is known."""
        return not (self.status or self.annotated or self.comment in {Posted.CREATED, Posted.UPDATED})


def publish(
    forge: Forge,
    number: int,
    publication: Publication,
    mode: Mode = Mode.UPDATE,
    *,
    only_if_there: bool = False,
    wait: Callable[[float], None] = time.sleep,
) -> Published:
    """Publishes, unless a newer run has, or the commit is no longer the pull request's head: the run for the new one will do it.

    only_if_there: only updates an existing comment. The status comes first, since a merge may wait for it. What the token may not do (403) is
    left out and the rest is done; any other failure ends it. Failures are told in the result, with what was done before.
    """
    publishing = _Publishing(forge, number, publication, mode, wait)
    try:
        publishing.run(only_if_there=only_if_there)
    except Failure as failure:
        publishing.done.failure = failure
    return publishing.done


@dataclass(frozen=True, slots=True)
class _Said:
    """One of this account's comments, with the content of its marker."""

    comment: Comment
    made: datetime
    commit: str

    @property
    def body(self) -> str:
        return self.comment.body.partition("\n")[2]


class _Publishing:
    """One publication on its way. done: what was done so far."""

    def __init__(
        self, forge: Forge, number: int, publication: Publication, mode: Mode, wait: Callable[[float], None]
    ) -> None:
        self._forge = forge
        self._number = number
        self._publication = publication
        self._report = publication.report
        self._mode = mode
        self._wait = wait
        self.done = Published()

    def run(self, *, only_if_there: bool) -> None:
        said = self._said()
        if said is None or any(self._order(each) > self._own_order for each in said):
            self.done.comment = Posted.STALE
            return
        for step in (self._set_status, partial(self._comment, said, only_if_there=only_if_there), self._annotate):
            try:
                step()
            except Stalled as refused:
                if refused.reason != FORBIDDEN:
                    raise
                self.done.failure = self.done.failure or refused

    def _set_status(self) -> None:
        self.done.tried = True
        self._forge.set_status(self._report.commit, self._publication.status)
        self.done.status = True

    def _annotate(self) -> None:
        if not self._publication.annotations:
            return
        what = self._publication
        self.done.annotated = self._forge.annotate(self._report.commit, what.status, what.summary, what.annotations)

    def _comment(self, said: list[_Said], *, only_if_there: bool) -> None:
        if only_if_there and not said:
            self.done.comment = Posted.SKIPPED
            return
        last = max(said, key=self._order, default=None)
        if last is not None and last.commit == self._report.commit and _same(last.body, self._report.body):
            self.done.comment = Posted.UNCHANGED
        elif self._mode is Mode.UPDATE:
            self._keep_one(said)
        else:
            self._add(self._report.text)
            if self._mode is not Mode.NEW:
                self._put_away_older()

    def _keep_one(self, found: list[_Said] | None) -> None:
        """Repeats until the first comment has the newest text and no other is left."""
        for _ in range(_ROUNDS):
            if found is None:
                return
            newest = max(found, key=self._order, default=None)
            is_own = newest is None or self._order(newest) <= self._own_order
            text = self._report.text if newest is None or is_own else newest.comment.body
            changed = False
            try:
                if not found:
                    self._add(text)
                    changed = True
                elif not _same(found[0].comment.body, text):
                    self._forge.edit_comment(self._number, found[0].comment, text)
                    self.done.comment = self.done.comment or (Posted.UPDATED if is_own else Posted.STALE)
                    changed = True
            except GoneError:
                if not found:
                    raise
                changed = True  # another run has deleted it
            for each in found[1:]:
                self._forge.delete_comment(self._number, each.comment)
                changed = True
            if not changed:
                return
            self._wait(SETTLE)
            found = self._said()

    def _put_away_older(self) -> None:
        for _ in range(_ROUNDS):
            said = sorted(self._said() or (), key=self._order)
            if len(said) <= 1:
                return
            for each in said[:-1]:
                if self._mode is Mode.DELETE_AND_NEW:
                    self._forge.delete_comment(self._number, each.comment)
                else:
                    retired = replace(each.comment, body=f"{_RETIRED}\n{each.body}")
                    self._forge.hide_comment(self._number, retired)
            self._wait(SETTLE)

    def _add(self, text: str) -> None:
        self._forge.add_comment(self._number, text)
        self.done.comment = self.done.comment or Posted.CREATED

    def _said(self) -> list[_Said] | None:
        """This account's comments about the report's key, the oldest first; None if its commit is no longer the head.

        The head is asked for each time, since comments about another commit count as older.
        """
        if self._forge.pull_request(self._number).head_commit != self._report.commit:
            return None
        said = []
        for comment in self._forge.comments(self._number):
            marker = _MARKER.match(comment.body)
            if marker is None or marker["key"] != (quote(self._report.key) or "-"):
                continue
            try:
                made = datetime.fromisoformat(marker["at"]).astimezone(UTC)
            except ValueError:
                continue
            said.append(_Said(comment, made, marker["commit"]))
        return said

    def _order(self, said: _Said) -> tuple[bool, datetime]:
        return (said.commit == self._report.commit, said.made)

    @property
    def _own_order(self) -> tuple[bool, datetime]:
        return (True, self._report.made)


def _same(left: str, right: str) -> bool:
    """Whether both texts are equal. Forges change line ends and drop trailing blank lines."""
    return left.replace("\r\n", "\n").rstrip() == right.replace("\r\n", "\n").rstrip()


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


def withdraw(forge: Forge, branch: str, base: str) -> None:
    """Closes it, since there is nothing left to propose. Its title says so, or a later look would take it for one that a person declined."""
    for pull in forge.pull_requests_of(branch):
        if pull.is_open and pull.base_branch == base:
            title = f"{pull.title} (withdrawn, since nothing is left to propose)"
            forge.close_pull_request(pull.number, title=title)
