"""The ports: interfaces to the outside world, as Protocols, and what a forge shows and is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from reconciler.model.changes import Apply, ChangeSet, Plan, Write, WriteResult
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Failure
from reconciler.model.findings import Severity
from reconciler.model.nodes import InstanceType
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class PullRequest:
    """One pull request as its forge shows it.

    head_branch: the branch in the source repository. head_ref: the reference of its head in the target repository. from_fork: it
    comes from another repository, so its author may have no rights in this one.
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


class Clock(Protocol):
    """Tells the time: the machine's clock, or one that a test sets."""

    def now(self) -> datetime:
        """The present, in UTC, with a time zone."""


class Source(Protocol):
    """A repository of manifests."""

    def read(self) -> SourceTree:
        """The newest tree, or the last good one with `stalled` set. Cheap when nothing changed.

        Raises `Stalled` only when there never was a good one.
        """

    def hasten(self) -> None:
        """Makes the next read ignore back-offs, since something new was announced."""

    def close(self) -> None:
        """Give up what it holds (processes, files); it is not read afterwards."""


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event about one object. kind: Normal or Warning; reason: CamelCase."""

    ref: ObjectRef
    kind: str
    reason: str
    message: str


class Cluster(Protocol):
    """A cluster that is watched and written to: a real one, the embedded one, or (reading only) a snapshot.

    Thread-safe: `view` and writes are called from the pass's thread, `changed` from watch threads.
    """

    @property
    def name(self) -> str:
        """Its name in messages: `kubeconfig:prod`, `in-cluster`, `embedded`, `snapshot:PATH`."""

    def start(self, changed: Callable[[], None]) -> None:
        """Begin watching; `changed` is called (cheaply, from any thread) whenever the next view would differ."""

    def view(self) -> ClusterView:
        """The present view. Raises `Waiting` until every watch has synced, and `Transient` if nothing can be read."""

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        """One write; refusals and conflicts are results, never exceptions. A snapshot refuses every write."""

    def unknown_fields(self, apply: Apply) -> tuple[str, ...] | None:  # noqa: ARG002 - the answer of a cluster without definitions
        """The paths of the fields that the served definition of the kind does not have; None if that cannot be told. Writes nothing.

        Raises `Transient` and `Waiting`, as a view does.
        """
        return None

    def record(self, event: Event) -> None:
        """Records an event, as a best effort; never raises."""

    def close(self) -> None:
        """Give up what it holds (connections, watches); it is not used afterwards."""


class Catalog(Protocol):
    """What can be launched and at what price."""

    @property
    def source(self) -> str:
        """Where prices come from and how old they are, for the assumptions about cost."""

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:
        """Sorted by name. Raises `Waiting` or `Transient` when the source cannot be read."""


class Forge(Protocol):
    """One repository on GitHub, GitLab or Gitea. Every call may raise `Invalid`, `Stalled` or `Transient`."""

    @property
    def name(self) -> str:
        """Its name in messages: `GitHub`, `GitLab`, `Gitea`."""

    def pull_request(self, number: int) -> PullRequest:
        """The pull request of that number."""

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        """All that are open, by number."""

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        """Those from this branch of this repository, closed ones too, the newest first."""

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        """Opens one from branch `head` into branch `base`, both of this repository."""

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        """Changes its title and text."""

    def close_pull_request(self, number: int, *, title: str) -> None:
        """Closes it without merging, under another title."""

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Only those that this account wrote, the oldest first, since anyone may write what looks like headroom's."""

    def add_comment(self, number: int, body: str) -> None:
        """Adds a comment. body: Markdown."""

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        """Changes its text. Raises `Invalid` if it is gone."""

    def hide_comment(self, number: int, comment: Comment) -> None:
        """Gives it this body, and collapses it as outdated. It can still be read."""

    def delete_comment(self, number: int, comment: Comment) -> None:
        """Deletes it. Not a failure if it is gone already."""

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Replaces the last status of the same context."""

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        """Annotates lines, with the status as the heading. False if the forge or the token does not support that."""

    def close(self) -> None:
        """Give up what it holds (connections); it is not used afterwards."""


class Proposals(Protocol):
    """Takes a plan in place of the cluster, for people to merge and another tool to apply."""

    def propose(self, rendered: Mapping[str, str], *, keep: Callable[[str], bool], state: ProposedPlan) -> None:
        """Proposes a plan. rendered: every document that should be in force, by file name. keep: whether an existing file that is not
        among these stays. Raises `Invalid`, `Stalled` or `Transient`."""


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """The plan that is proposed, and the revision that it is rendered from. waiting: what is planned and not proposed yet, a sentence
    each."""

    plan: Plan
    revision: str
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one pass found and did, for observers of passes. plan, change_set, tree: None where the pass did not get that far.

    change_set: of a pass that applies. tree: the manifests that it used. timings: seconds by stage, in order. failure: why it ended early.
    settled: nothing was left to change and nothing is on its way. suspended: by headroom's settings or its inventory, so that nothing is
    applied. traces: of faults for which an object was set aside, where it was not before.
    """

    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    settled: bool = False
    suspended: bool = False
    traces: tuple[str, ...] = ()
