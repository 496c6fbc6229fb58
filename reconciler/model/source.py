"""What comes from the repository and its forge: a tree of files at one revision, and pull requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.model.findings import Severity

REMOVALS_TRAILER = "Headroom-Allow-Removals"
"""The trailer of a commit that lifts the share of what removals may take within an hour."""
_MOST_SKIPPED = 5
"""The most files that are named as reasons. Each is a finding as well."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Manifests (`.yaml`, `.yml`, `.json`) and templates (`.j2`) under the configured path, without ignored files."""

    revision: str | None
    """`main@sha1:` and 40 hexadecimal digits; None for a plain folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path inside the repository (POSIX, without a leading "./")."""
    root: str = ""
    """Put before paths in messages; "" for a remote repository."""
    stalled: tuple[str, str] | None = None
    """Reason and message when the newest state could not be read, and this is the last good tree."""
    rewound: bool = False
    """Whether the branch was force-pushed lately, so that nothing may be pruned or released because of it yet."""
    removals_allowed: bool = False
    """Whether a commit since the last one in force says `Headroom-Allow-Removals: true`."""
    committed: datetime | None = None
    """When the revision was committed; None for a plain folder."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Path and reason of each file left out, such as one that is too large or links out of the repository."""

    @property
    def reasons_to_keep(self) -> tuple[str, ...]:
        """Why objects that this tree no longer declares must stay all the same."""
        reasons = []
        if self.stalled is not None:
            reasons.append(f"the repository is stalled: {self.stalled[1]}")
        if self.rewound:
            reasons.append("the branch was force-pushed a short while ago")
        reasons += [f"{path} was left out: {why}" for path, why in self.skipped[:_MOST_SKIPPED]]
        more = len(self.skipped) - _MOST_SKIPPED
        if more > 0:
            reasons.append(f"{more:,} more {'file was' if more == 1 else 'files were'} left out")
        return tuple(reasons)


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
