"""Pull requests (GitLab: merge requests), what is said on them, and what is said of their commits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.findings import Severity


@dataclass(frozen=True, slots=True)
class PullRequest:
    """One pull request as its forge shows it.

    head_branch: in the repository that it comes from; head_ref: the reference of its head in the repository that it goes
    into. from_fork: it comes from another repository, so that its author may have no rights in this one. body: markdown.
    """

    number: int
    title: str
    head_commit: str
    head_branch: str
    head_ref: str
    base_branch: str
    from_fork: bool = False
    is_open: bool = True
    merged: bool = False
    body: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that this account wrote. identity: as the forge calls it; node: its name in GitHub's GraphQL, else ""."""

    identity: str
    body: str
    node: str = ""


class CommitState(StrEnum):
    """What a status says of a commit. failure: it should not be merged as it is; error: it could not be judged."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """context: what the status is about, by which a later one replaces it; description: one line; url: where more is told."""

    context: str
    state: CommitState
    description: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark on one line of a file, shown beside the change. file: path in the repository."""

    file: str
    line: int
    severity: Severity
    title: str
    message: str
