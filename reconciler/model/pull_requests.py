"""Pull requests (GitLab: merge requests), their comments, and the statuses of their commits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.findings import Severity


@dataclass(frozen=True, slots=True)
class PullRequest:
    """One pull request as its forge shows it.

    head_branch: the branch in the source repository. head_ref: the reference of its head in the target repository. from_fork: it
    comes from another repository, so its author may have no rights in this one. body: Markdown.
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
    """A comment that this account wrote. identity: the forge's id. node: its id in GitHub's GraphQL API, else ""."""

    identity: str
    body: str
    node: str = ""


class CommitState(StrEnum):
    """What a status says about a commit. failure: it should not be merged as it is. error: it could not be judged. neutral: part of it
    could not be."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """context: the status's identity; a later status of the same context replaces it. description: one line. url: for details."""

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
